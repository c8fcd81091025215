package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/approval"
	"hcpx/internal/gate"
	"hcpx/internal/jsondoc"
	"hcpx/internal/order"
	"hcpx/internal/protocol"
)

// maxShownSteps bounds what a person is shown of composites within composites.
const maxShownSteps = 256

// request is this run as a person is asked about it (§15.2), after a look at its world. A refusal says that it could
// not run, so there is nothing to ask.
func (r *run) request() (approval.Request, *protocol.Error) {
	if r.world == nil {
		if err := r.look(); err != nil {
			return approval.Request{}, err
		}
	}
	left := maxShownSteps
	picture := r.picture(&left)
	if left < 0 {
		return approval.Request{}, protocol.Fail(protocol.NotExecutable, "It has more steps than a person can be shown.").With("reason", "steps")
	}
	e := r.verb.Entry
	where := approval.Where{Session: r.s.ID, Tenant: r.s.Tenant, Project: r.s.Project, Workspace: r.s.Workspace, GitDirs: r.s.GitDirs, Dir: r.s.Dir}
	return approval.Request{
		Principal: r.s.Principal, Where: where, Pack: r.pack.ID, Version: r.pack.Version, Digest: r.pack.Digest, Verb: r.verb.Command.Key,
		Operation: e.Operation, Message: e.Sentence(r.shownArgs()), Args: raw(r.shownArgs()), Plan: raw(picture), Preview: e.Preview,
		Canonical: object("principal", jsondoc.Str(string(r.s.Principal)), "request", r.canonical(e.Preview != "" || r.placed()), "digest", jsondoc.Str(r.pack.Digest),
			"plan", picture).Canonical(nil),
	}, nil
}

// canonical is what tells one request from another: command, canonical arguments (after defaults, members sorted, exact
// decimals), project, and the place, where the command works in one, or might: a composite's steps, a preview.
func (r *run) canonical(placed bool) *jsondoc.Node {
	n := object("pack_id", jsondoc.Str(r.pack.ID), "verb_key", jsondoc.Str(r.verb.Command.Key), "args", r.args,
		"tenant", jsondoc.Str(r.s.Tenant), "project", jsondoc.Str(r.s.Project))
	if placed || r.verb.Entry.Land == protocol.Local {
		n = n.With("workspace", jsondoc.Str(r.s.Workspace)).With("dir", jsondoc.Str(r.s.Dir))
	}
	return n
}

// placed says whether what runs may depend on the place of who asks: a composite's steps may. What a request takes from
// a place is the land's, which counts by itself.
func (r *run) placed() bool { return r.call.Argv == nil && r.call.Request == nil }

// shownArgs are the arguments without the secret ones, and of a step without what a secret of the composite decides.
func (r *run) shownArgs() *jsondoc.Node {
	schema, err := r.verb.Command.Args()
	if err != nil {
		return jsondoc.Obj() // step 5 has refused it
	}
	if r.open == nil {
		return hide(r.args, schema.Properties())
	}
	if r.open.Kind != jsondoc.Object {
		return r.open
	}
	return hide(schema.Defaults(r.open), schema.Properties())
}

// shown are the members of a plan that a person decides by, and that an approval is bound to. The rest is how this
// machine holds them.
var shown = []string{"cwd", "env", "reads", "writes", "executes", "network", "isolation", "protected", "withheld"}

// picture is exactly what runs: argv and the child's world, or the steps of a composite with theirs.
func (r *run) picture(left *int) *jsondoc.Node {
	n := jsondoc.Obj()
	call := r.shownCall()
	if call.Request != nil {
		n = n.With("request", requestNode(call.Request))
	}
	if call.Argv != nil {
		n = n.With("argv", stringsNode(call.Argv))
		if call.Stdin != nil {
			n = n.With("stdin", jsondoc.Str(string(call.Stdin)))
		}
	}
	if r.world.Spec != nil {
		for _, m := range r.worldPlan(r.world.Spec) {
			if m.Key == "env" { // the order tells nothing
				order.By(m.Value.Items, func(a, b *jsondoc.Node) int { return strings.Compare(a.Text, b.Text) })
			}
			if slices.Contains(shown, m.Key) {
				n = n.With(m.Key, m.Value)
			}
		}
	}
	if r.verb.ID == gate.Bootstrap {
		n = n.With("isolation", jsondoc.Str("in-process"))
	}
	if bound, ok := r.state.Bound(r.s.ID, r.pack.ID); ok { // it is of the session, which the same words in another do not have
		n = n.With("credential", object("owner", jsondoc.Str(bound.Owner), "kept", orNull(bound.Secret)))
	}
	if steps := r.verb.Adapter.Steps(); len(steps) > 0 {
		n = n.With("steps", r.stepPictures(steps, left))
	}
	return n
}

// shownCall is the call with [redacted] where an argument is secret: it is rendered again from what may be shown. What
// that makes another word of, or another number of words, is not shown at all.
func (r *run) shownCall() *adapter.Call {
	args := r.shownArgs()
	if args.Equal(r.args) {
		return r.call
	}
	if r.call.Request != nil {
		return r.shownRequest(args)
	}
	if r.call.Argv == nil {
		return &adapter.Call{}
	}
	shown := &adapter.Call{Argv: []string{r.call.Argv[0], protocol.Redacted}}
	if r.call.Stdin != nil {
		shown.Stdin = []byte(protocol.Redacted)
	}
	if args.Kind != jsondoc.Object {
		return shown
	}
	call, bad := r.verb.Adapter.Render(args)
	if len(bad) > 0 {
		return shown
	}
	if len(call.Argv) == len(r.call.Argv) {
		shown.Argv = make([]string, len(call.Argv))
		for i, word := range call.Argv {
			shown.Argv[i] = openly(r.call.Argv[i], word)
		}
	}
	if r.call.Stdin != nil && call.Stdin != nil {
		shown.Stdin = []byte(openly(string(r.call.Stdin), string(call.Stdin)))
	}
	return shown
}

// shownRequest is the request of the arguments that may be shown; where they make none, its method alone.
func (r *run) shownRequest(args *jsondoc.Node) *adapter.Call {
	least := &adapter.Call{Request: &adapter.Request{Method: r.call.Request.Method, URL: protocol.Redacted, Credential: r.call.Request.Credential}}
	if args.Kind != jsondoc.Object {
		return least
	}
	call, bad := r.verb.Adapter.Render(args)
	if len(bad) > 0 || call.Request == nil {
		return least
	}
	if call.Request.Fill != nil && len(call.Request.Files) == len(r.call.Request.Files) {
		call.Request.Files = r.call.Request.Files
		call.Request.Fill(call.Request)
	}
	return call
}

// openly is the text of a call as it may be shown: the same without its secrets, or nothing of it.
func openly(real, without string) string {
	if real == without || strings.Contains(without, protocol.Redacted) {
		return without
	}
	return protocol.Redacted
}

// common is a value as far as it does not follow from secrets: where the one that was made without them is the same.
func common(real, without *jsondoc.Node) *jsondoc.Node {
	switch {
	case without != nil && real.Equal(without):
		return real
	case without != nil && real.Kind == jsondoc.Object && without.Kind == jsondoc.Object:
		members := make([]jsondoc.Member, len(real.Members))
		for i, m := range real.Members {
			members[i] = jsondoc.Member{Key: m.Key, Value: common(m.Value, without.Get(m.Key))}
		}
		return jsondoc.Obj(members...)
	}
	return jsondoc.Str(protocol.Redacted)
}

// foreseen are the arguments of a composite's calls as far as its own decide them, in the order of the calls; nil where
// an expression needs the result of an earlier step.
func (r *run) foreseen(args *jsondoc.Node) []*jsondoc.Node {
	f, ok := r.verb.Adapter.(adapter.Foreseer)
	if !ok {
		return make([]*jsondoc.Node, len(r.verb.Adapter.Steps()))
	}
	return f.Foresee(r.ctx, args)
}

func (r *run) stepPictures(steps []adapter.Step, left *int) *jsondoc.Node {
	open := r.shownArgs()
	args := r.foreseen(r.args)
	var without []*jsondoc.Node // the same, had the steps no secrets: nothing of them is shown
	if !open.Equal(r.args) {
		without = r.foreseen(open)
	}
	var list []*jsondoc.Node
	r.seen = map[string][]string{}
	for i, s := range steps {
		if *left--; *left < 0 {
			break
		}
		n := object("id", jsondoc.Str(s.ID), "pack_id", jsondoc.Str(s.Pack), "verb_key", jsondoc.Str(s.Verb))
		n, sub := r.stepShown(n, s, args[i])
		if sub != nil {
			if without != nil {
				sub.open = common(args[i], without[i])
			}
			n = sub.stepPlan(n, left)
			if !r.picturing && sub.world != nil && !asksItself(sub.verb) { // a run that is only shown makes no calls
				key := callKey(s.Pack, s.Verb, args[i])
				r.seen[key] = append(r.seen[key], sub.exact())
			}
		}
		list = append(list, n)
	}
	return jsondoc.Arr(list...)
}

// stepVerb is the command of one step.
func (r *run) stepVerb(s adapter.Step) (*gate.Loaded, *gate.Verb, *protocol.Error) {
	loaded, err := r.p.Gate.Pack(r.state, r.s.ID, s.Pack)
	if err != nil {
		return nil, nil, err
	}
	verb, err := r.p.Gate.Verb(r.state, r.s.ID, loaded, s.Verb)
	return loaded, verb, err
}

// asksItself: a step with a preview is confirmed by who has seen that, when the step's turn has come (§15.3). What it
// showed before the steps ahead of it ran would be another thing.
func asksItself(v *gate.Verb) bool { return v.Entry.Confirm && v.Entry.Preview != "" }

// stepShown adds to n what one step is: its pack's digest, and its arguments where they are known. Then it is a run that
// may be looked at.
func (r *run) stepShown(n *jsondoc.Node, s adapter.Step, args *jsondoc.Node) (*jsondoc.Node, *run) {
	loaded, verb, err := r.stepVerb(s)
	if err != nil {
		return n.With("blocked", jsondoc.Str(err.Message)), nil
	}
	n = n.With("digest", jsondoc.Str(loaded.Digest)).With("operation", jsondoc.Str(string(verb.Entry.Operation))).
		With("confirm", jsondoc.Boolean(verb.Entry.Confirm))
	if asksItself(verb) {
		n = n.With("preview", jsondoc.Str(verb.Entry.Preview))
	}
	if args == nil {
		return n.With("args", jsondoc.NullNode()), nil
	}
	sub := &run{p: r.p, ctx: r.ctx, s: r.s, id: r.id, state: r.state, pack: loaded, verb: verb, args: args, picturing: true}
	sub.req.args, sub.req.PackID, sub.req.VerbKey = args, s.Pack, s.Verb
	return n, sub
}

// stepPlan adds the arguments of the step and what it would do, or why it could not.
func (r *run) stepPlan(n *jsondoc.Node, left *int) *jsondoc.Node {
	r.asked = r.p.Gate.Ask(r.s, r.verb, r.s.Project, true)
	err := r.render()
	n = n.With("args", r.shownArgs())
	if err == nil {
		err = r.look()
	}
	switch {
	case err == nil:
		return n.With("plan", r.picture(left))
	case r.open != nil && !r.open.Equal(r.req.args): // the sentence may be about what is hidden
		return n.With("blocked", jsondoc.Str(fmt.Sprintf("It could not run with these arguments (%s).", err.Code)))
	}
	return n.With("blocked", jsondoc.Str(err.Message))
}

// foresaw finds what a person saw of a call of this approved composite: the same arguments, each once, and what exactly
// they would run. The call itself compares that when its turn has come, since files may be others by then.
func (r *run) foresaw(pack, verb string, args []byte) (exact string, ok bool) {
	n, faults := jsondoc.Parse(args, jsondoc.Limits{Bytes: len(args), Depth: envelopeDepth})
	if n == nil || len(faults) > 0 {
		return "", false
	}
	key := callKey(pack, verb, n)
	if len(r.seen[key]) == 0 {
		return "", false
	}
	exact, r.seen[key] = r.seen[key][0], r.seen[key][1:]
	return exact, true
}

// exact is the hash of what a person's yes is to (§15.2): the pack, the arguments, and all that would run, with each step and
// its pack, and with what a composite's secret decides.
func (r *run) exact() string {
	open, left := r.open, maxShownSteps
	r.open = nil
	sum := sha256.Sum256(object("digest", jsondoc.Str(r.pack.Digest), "args", r.args, "plan", r.picture(&left)).Canonical(nil))
	r.open = open
	return hex.EncodeToString(sum[:])
}

// asSeen says whether a confirmed step is what the person saw who approved its composite (§15.2).
func (r *run) asSeen() bool {
	if r.s.Seen == "" {
		return true
	}
	if r.world == nil && r.look() != nil {
		return false
	}
	return r.exact() == r.s.Seen
}

func callKey(pack, verb string, args *jsondoc.Node) string {
	return string(object("pack", jsondoc.Str(pack), "verb", jsondoc.Str(verb), "args", args).Canonical(nil))
}
