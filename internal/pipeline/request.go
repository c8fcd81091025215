package pipeline

import (
	"slices"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/approval"
	"hcpx/internal/gate"
	"hcpx/internal/jsondoc"
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

// shownArgs are the arguments without the secret ones.
func (r *run) shownArgs() *jsondoc.Node {
	schema, err := r.verb.Command.Args()
	if err != nil {
		return jsondoc.Obj() // step 5 has refused it
	}
	return hide(r.args, schema.Properties())
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
				slices.SortFunc(m.Value.Items, func(a, b *jsondoc.Node) int { return strings.Compare(a.Text, b.Text) })
			}
			if slices.Contains(shown, m.Key) {
				n = n.With(m.Key, m.Value)
			}
		}
	}
	if r.verb.ID == gate.Bootstrap {
		n = n.With("isolation", jsondoc.Str("in-process"))
	}
	if steps := r.verb.Adapter.Steps(); len(steps) > 0 {
		n = n.With("steps", r.stepPictures(steps, left))
	}
	return n
}

// shownCall is the call with [redacted] where an argument is secret: it is rendered again from what may be shown.
func (r *run) shownCall() *adapter.Call {
	args := r.shownArgs()
	if args.Equal(r.args) {
		return r.call
	}
	call, bad := r.verb.Adapter.Render(args)
	switch {
	case len(bad) > 0 && r.call.Request != nil:
		return &adapter.Call{Request: &adapter.Request{Method: r.call.Request.Method, URL: protocol.Redacted, Credential: r.call.Request.Credential}}
	case len(bad) > 0:
		return &adapter.Call{Argv: []string{protocol.Redacted}}
	case call.Request != nil && call.Request.Fill != nil && len(call.Request.Files) == len(r.call.Request.Files):
		call.Request.Files = r.call.Request.Files
		call.Request.Fill(call.Request)
	}
	return call
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
	args := r.foreseen(open)
	whole := open.Equal(r.args) // else [redacted] stands where the steps get secrets, and is not judged
	var list []*jsondoc.Node
	for i, s := range steps {
		if *left--; *left < 0 {
			break
		}
		n := object("id", jsondoc.Str(s.ID), "pack_id", jsondoc.Str(s.Pack), "verb_key", jsondoc.Str(s.Verb))
		n, sub := r.stepShown(n, s, args[i])
		switch {
		case sub == nil:
		case whole:
			n = sub.stepPlan(n, left)
		case len(sub.verb.Adapter.Steps()) > 0:
			n = n.With("plan", object("steps", sub.stepPictures(sub.verb.Adapter.Steps(), left)))
		}
		list = append(list, n)
	}
	return jsondoc.Arr(list...)
}

// stepShown adds to n what one step is: its pack's digest, and its arguments where they are known. Then it is a run that
// may be looked at.
func (r *run) stepShown(n *jsondoc.Node, s adapter.Step, args *jsondoc.Node) (*jsondoc.Node, *run) {
	loaded, err := r.p.Gate.Pack(r.state, r.s.ID, s.Pack)
	if err != nil {
		return n.With("blocked", jsondoc.Str(err.Message)), nil
	}
	verb, err := r.p.Gate.Verb(r.state, r.s.ID, loaded, s.Verb)
	if err != nil {
		return n.With("blocked", jsondoc.Str(err.Message)), nil
	}
	n = n.With("digest", jsondoc.Str(loaded.Digest)).With("operation", jsondoc.Str(string(verb.Entry.Operation))).
		With("confirm", jsondoc.Boolean(verb.Entry.Confirm))
	if args == nil {
		return n.With("args", jsondoc.NullNode()), nil
	}
	sub := &run{p: r.p, ctx: r.ctx, s: r.s, id: r.id, state: r.state, pack: loaded, verb: verb, args: args}
	sub.req.args, sub.req.PackID, sub.req.VerbKey = args, s.Pack, s.Verb
	return n.With("args", sub.shownArgs()), sub
}

// stepPlan adds what the step would do, or why it could not.
func (r *run) stepPlan(n *jsondoc.Node, left *int) *jsondoc.Node {
	r.asked = r.p.Gate.Ask(r.s, r.verb, r.s.Project, true)
	err := r.render()
	if err == nil {
		n = n.With("args", r.shownArgs())
		err = r.look()
	}
	if err != nil {
		return n.With("blocked", jsondoc.Str(err.Message))
	}
	return n.With("plan", r.picture(left))
}

// foresaw says whether a call of this approved composite is one whose arguments a person saw, each once.
func (r *run) foresaw(pack, verb string, args []byte) bool {
	if r.expected == nil {
		r.expected = map[string]int{}
		known := r.foreseen(r.args)
		for i, s := range r.verb.Adapter.Steps() {
			if known[i] != nil {
				r.expected[callKey(s.Pack, s.Verb, known[i])]++
			}
		}
	}
	n, faults := jsondoc.Parse(args, jsondoc.Limits{Bytes: len(args), Depth: envelopeDepth})
	if n == nil || len(faults) > 0 {
		return false
	}
	key := callKey(pack, verb, n)
	if r.expected[key] == 0 {
		return false
	}
	r.expected[key]--
	return true
}

func callKey(pack, verb string, args *jsondoc.Node) string {
	return string(object("pack", jsondoc.Str(pack), "verb", jsondoc.Str(verb), "args", args).Canonical(nil))
}
