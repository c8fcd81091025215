package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hcpx/internal/app"
	"hcpx/internal/approval"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// execOptions is one exec as the command line says it (§6.7).
type execOptions struct {
	Pack, Verb string
	Words      []string // behind --
	Confirm    bool
	Approval   string
	Plan       bool
	Key        string
	Envelope   string // "-" or a file; then nothing else is given
	Stream     bool   // envelopes on stdin, one a line; then nothing else is given
	Jobs       int    // how many of a stream run at once
	Apply      bool   // the same as Confirm
}

func newExecCmd(d *deps, run runner[execOptions]) *cobra.Command {
	var o execOptions
	c := command(text{
		use:   "exec PACK VERB [--confirm] [--plan] [-- k=v …]",
		short: "Run one command of an activated pack",
		long: "k=v is typed by the command's schema, k:=JSON takes any value, a key given again builds an array, a.b=v nests.\n" +
			"One value for an array argument is an array of one. What does not fit is refused, never changed to fit.\n" +
			"A gated write needs --confirm; on a terminal a person is asked once. --plan shows what would run and runs nothing.\n" +
			"Arguments longer than a command line takes: --envelope - reads {\"pack_id\", \"verb_key\", \"args\", …} from stdin.\n" +
			"--stream reads one envelope a line and writes one result a line, in that order; exit 0 when all of them are ok,\n" +
			"else 1. The same command with flags: hcpx PACK WORDS… --help.",
		example: "hcpx exec git log -- limit=5\nhcpx exec git commit --plan -- 'message=First words'\nhcpx exec ledger transfer --confirm -- to=rent amount=100\nhcpx exec --stream --jobs 4",
	}, nil, nil)
	c.Args = func(c *cobra.Command, args []string) error { return o.operands(c, args) }
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.check(c); err != nil {
			return err
		}
		return run(c.Context(), d, o)
	}
	f := c.Flags()
	f.SortFlags = false
	o.register(f)
	f.StringVar(&o.Envelope, "envelope", "", "read the whole request from `FILE`, or from stdin for -")
	f.BoolVar(&o.Stream, "stream", false, "read one request a line from stdin, and answer each; implies --json")
	f.IntVar(&o.Jobs, "jobs", 1, "how many requests of a stream run at once, up to `N`")
	c.ValidArgsFunction = d.completeExec
	return c
}

// register declares the flags that a request has on either form of the command line: hcpx exec, and the face (§12.1).
func (o *execOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.Confirm, "confirm", false, "confirm a gated write")
	f.BoolVar(&o.Apply, "apply", false, "the same as --confirm")
	f.StringVar(&o.Approval, "approval", "", "confirm by the approval `ID` of a person")
	f.BoolVar(&o.Plan, "plan", false, "show what would run, and run nothing")
	f.StringVar(&o.Key, "idempotency-key", "", "`KEY` under which a write runs at most once")
}

// operands splits the words at --: ids before, arguments after.
func (o *execOptions) operands(c *cobra.Command, args []string) error {
	ids := args
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		ids, o.Words = args[:dash], args[dash:]
	}
	if from := o.elsewhere(); from != "" {
		if len(args) > 0 {
			return usage("exec", "%s carries pack, verb and arguments; %q stands beside it", from, clip(args[0]))
		}
		return nil
	}
	switch {
	case len(ids) > 2 && strings.Contains(ids[2], "="):
		return usage("exec", "Arguments stand behind --, as in hcpx exec %s %s -- %s", clean(ids[0]), clean(ids[1]), clip(clean(ids[2])))
	case len(ids) > 2:
		return usage("exec", "hcpx exec takes a pack and a verb, and %q is one too many", clip(clean(ids[2])))
	case len(ids) < 2:
		return usage("exec", "hcpx exec needs a pack and a verb")
	}
	o.Pack, o.Verb = ids[0], ids[1]
	return nil
}

// elsewhere is the flag by which requests come from elsewhere than the words.
func (o *execOptions) elsewhere() string {
	switch {
	case o.Stream:
		return "--stream"
	case o.Envelope != "":
		return "--envelope"
	}
	return ""
}

// wrong says what of the flags of register cannot stand, on either form of the command line; "" when nothing.
func (o *execOptions) wrong() string {
	switch o.Confirm, o.Apply = o.Confirm || o.Apply, false; {
	case o.Confirm && o.Approval != "":
		return "--confirm and --approval are two confirmations; give one"
	case !utf8.ValidString(o.Key):
		return "--idempotency-key is no UTF-8 text, so two keys could be one"
	}
	return ""
}

// maxJobs bounds how many requests of a stream run at once.
const maxJobs = 64

// check refuses flags that contradict each other.
func (o *execOptions) check(c *cobra.Command) error {
	if why := o.wrong(); why != "" {
		return usage("exec", "%s", why)
	}
	if c.Flags().Changed("approval") && o.Approval == "" {
		return usage("exec", "--approval needs an id")
	}
	from := o.elsewhere()
	switch {
	case from != "" && (o.Confirm || o.Approval != "" || o.Key != ""):
		return usage("exec", "The envelope itself carries confirm and idempotency_key; leave the flags out")
	case o.Stream && o.Envelope != "":
		return usage("exec", "--stream reads from stdin; leave --envelope out")
	case !o.Stream && c.Flags().Changed("jobs"):
		return usage("exec", "--jobs belongs to --stream")
	case o.Jobs < 1 || o.Jobs > maxJobs:
		return usage("exec", "--jobs is 1 to %d, not %d", maxJobs, o.Jobs)
	}
	return nil
}

func runExec(ctx context.Context, d *deps, o execOptions) error {
	switch {
	case o.Stream:
		return d.execStream(ctx, o)
	case o.Envelope != "":
		return d.execEnvelope(ctx, o)
	}
	return d.exec(ctx, o, func(a *app.App) (*jsondoc.Node, []protocol.Violation) {
		if len(o.Words) == 0 {
			return jsondoc.Obj(), nil
		}
		return buildArgs(o.Words, a.ArgsSchema(o.Pack, o.Verb))
	})
}

// exec sends the request that a command line says, and shows the answer. say gives its arguments, and what of them
// cannot be said, once the bootstrap pack is there.
func (d *deps) exec(ctx context.Context, o execOptions, say func(*app.App) (*jsondoc.Node, []protocol.Violation)) error {
	a, x, s, err := d.executor()
	if a == nil {
		return err
	}
	args, bad := say(a)
	told := func(r protocol.Result) protocol.Result {
		if r = o.named(r); !d.json() {
			r = typed(r, args)
		}
		return r
	}
	answer := func(r protocol.Result) error { return d.answer(told(r)) }
	refuse := func(why *protocol.Error) error { return answer(a.Refuse(ctx, s, o.envelope(args), why)) }
	switch {
	case err != nil:
		return refuse(stepped(err))
	case len(bad) > 0:
		return refuse(unsayable(o, bad))
	case o.Plan:
		return d.answerPlan(told(x.Plan(ctx, s, o.envelope(args))))
	case !o.Confirm && o.Approval == "" && d.mayAsk(s):
		plan := x.Plan(ctx, s, o.envelope(args))
		if !plan.OK {
			return answer(plan) // exec would refuse alike, whatever the person says
		}
		yes, refusal := d.askFirst(plan)
		if refusal != nil {
			return refuse(refusal)
		}
		if yes && x.Plan(ctx, s, o.envelope(args)).Exact != plan.Exact {
			return refuse(approval.Changed())
		}
		o.Confirm = yes
	}
	return answer(x.Exec(ctx, s, o.envelope(args)))
}

// named says which command was named where the envelope that was made of the words could not be read (§6.2).
func (o execOptions) named(r protocol.Result) protocol.Result {
	if !r.OK {
		r.PackID, r.VerbKey = orWord(r.PackID, o.Pack), orWord(r.VerbKey, o.Verb)
	}
	return r
}

// typed says a refusal in the words of the command line: what was typed where a word has not the form of its type.
// It is for a person's eye; JSON is the same for every face (§6.6).
func typed(r protocol.Result, args *jsondoc.Node) protocol.Result {
	if r.OK {
		return r
	}
	e := *r.Error
	bad := slices.Clone(decode[[]protocol.Violation](e.Details["violations"]))
	for i, v := range bad {
		wanted, untyped := strings.CutPrefix(v.Message, "The value is a string, not ")
		if word := args.Lookup(v.Pointer); untyped && word != nil {
			bad[i].Message = fmt.Sprintf("%q is not %s", clip(word.Text), wanted)
			e.Message = strings.Replace(e.Message, v.Message, bad[i].Message, 1)
		}
	}
	if e.Code == protocol.InvalidArgs && len(bad) > 0 {
		e.Details = maps.Clone(e.Details)
		e.Details["violations"] = bad
	}
	r.Error = &e
	return r
}

// envelope is the request as every face sends it (§6.6).
func (o execOptions) envelope(args *jsondoc.Node) []byte {
	members := []jsondoc.Member{
		{Key: "pack_id", Value: jsondoc.Str(o.Pack)},
		{Key: "verb_key", Value: jsondoc.Str(o.Verb)},
		{Key: "args", Value: args},
	}
	switch {
	case o.Confirm:
		members = append(members, jsondoc.Member{Key: "confirm", Value: jsondoc.Boolean(true)})
	case o.Approval != "":
		members = append(members, jsondoc.Member{Key: "confirm", Value: jsondoc.Str(o.Approval)})
	}
	if o.Key != "" {
		members = append(members, jsondoc.Member{Key: "idempotency_key", Value: jsondoc.Str(o.Key)})
	}
	return jsondoc.Obj(members...).Append(nil)
}

// stepped says at which step what failed before the pipeline is refused: a caller without a valid Principal at
// step 4, a store or settings that cannot be used at step 2.
func stepped(err error) *protocol.Error {
	e := *asFailure(err)
	e.Step = 2
	if e.Code == protocol.Unauthenticated {
		e.Step = 4
	}
	return &e
}

// unsayable refuses words that are no arguments at all. Steps 1 to 4 come first, so that whoever may not run
// the command learns that and nothing else.
func unsayable(o execOptions, bad []protocol.Violation) *protocol.Error {
	e := protocol.Fail(protocol.InvalidArgs, fmt.Sprintf("Arguments of %s/%s are not valid. %s", o.Pack, o.Verb, bad[0].Message)).
		With("violations", bad)
	e.Step = 5
	return e
}

// maxEnvelope is one byte more than an envelope may have: step 1 refuses it (§6.1).
const maxEnvelope = 1<<20 + 1

func (d *deps) execEnvelope(ctx context.Context, o execOptions) error {
	src, err := d.readEnvelope(o.Envelope)
	if err != nil {
		return err
	}
	a, x, s, err := d.executor()
	if a == nil {
		return err
	}
	if err != nil {
		return d.answer(a.Refuse(ctx, s, src, stepped(err)))
	}
	if o.Plan {
		return d.answerPlan(x.Plan(ctx, s, src))
	}
	return d.answer(x.Exec(ctx, s, src))
}

func (d *deps) readEnvelope(from string) ([]byte, error) {
	return d.wait(func() ([]byte, error) { // a fifo waits for its writer from the opening on
		in := d.env.In
		if from != "-" {
			f, err := os.Open(from)
			if err != nil {
				return nil, usage("exec", "The envelope cannot be read: %v", err)
			}
			defer f.Close()
			in = f
		}
		src, err := io.ReadAll(io.LimitReader(in, maxEnvelope))
		if err != nil {
			return nil, usage("exec", "The envelope cannot be read: %v", err)
		}
		return src, nil
	})
}

// executor is the one way to run; the bootstrap pack is there from first use (§11.4). With an error and an App
// the request is refused through the pipeline, so that the audit has it; without an App the command line is wrong.
func (d *deps) executor() (*app.App, protocol.Executor, protocol.Session, error) {
	a, s, err := d.appAndSession()
	if err != nil {
		if asFailure(err).Code != protocol.Unauthenticated {
			a = nil
		}
		return a, nil, s, err
	}
	x, failure := a.Executor(s)
	return a, x, s, lift(failure)
}

// askFirst asks a person once about a gated write (§6.7): the sentence and the very argv.
func (d *deps) askFirst(plan protocol.Result) (yes bool, refusal *protocol.Error) {
	v := readPlan(plan.Result)
	if !v.Confirm.Needed {
		return false, nil
	}
	p := d.errPage()
	p.line("%s", orWord(v.Confirm.Message, "This command changes something."))
	if len(v.Argv) > 0 {
		p.raw("  " + quoted(v.Argv) + "\n")
	}
	if v.Request != nil {
		v.Request.show(p, "  ")
	}
	ok, err := d.ask("Run it?")
	switch {
	case err != nil:
		refusal = asFailure(err)
	case !ok:
		refusal = protocol.Fail(protocol.ConfirmRequired, "Not confirmed; nothing was run.")
	default:
		return true, nil
	}
	refusal.Step = 6
	return false, refusal
}
