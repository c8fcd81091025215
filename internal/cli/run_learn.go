package cli

import (
	"context"
	"encoding/json"
	"strings"

	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// runLearn watches a trusted run. The program has stdin; what it prints goes to stderr, so that the proposal stands
// alone on stdout.
func runLearn(ctx context.Context, d *deps, o allowOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.LearnView, *protocol.Error) {
		r := lifecycle.LearnRequest{Argv: o.Argv, In: d.env.In, Out: d.env.Err, Ready: d.env.Ready, Agreed: d.agreed(s, o.Yes)}
		if d.env.Environ != nil {
			r.Env = d.env.Environ()
		}
		return l.Learn(ctx, s, r)
	}, showLearned)
}

// agreed says that a program is about to run outside the sandbox, and asks whether it may. Where nobody can be asked,
// --yes must have said so.
func (d *deps) agreed(s protocol.Session, yes bool) func(string) *protocol.Error {
	return func(program string) *protocol.Error {
		p := d.errPage()
		p.styled(warn, "%s is about to run OUTSIDE the sandbox, with all your rights. It is watched, not confined.", program)
		switch {
		case p.err != nil:
			return asFailure(broken("say what will run", p.err))
		case yes:
			return nil
		case !d.mayAsk(s):
			return protocol.Fail(protocol.UsageError, "Nobody can be asked here whether it may run; --yes says so.").WithHint("hcpx allow --learn --yes -- PROGRAM …")
		}
		ok, err := d.ask("Run it?")
		if err != nil {
			return asFailure(err)
		}
		if !ok {
			return protocol.Fail(protocol.Canceled, "Nothing was run.")
		}
		return nil
	}
}

func showLearned(p *page, v lifecycle.LearnView) {
	p.line("For a run like this one a pack declares")
	p.head("in surface.json")
	p.block("wrap", v.Wrap)
	p.head("in policy.json, for the command")
	p.block("", v.Policy)
	if len(v.Commands) > 0 {
		p.head("and its operator says, or gives --allow-bin and --allow-read at install,")
		for _, c := range v.Commands {
			p.line("%s", c)
		}
	}
	p.raw("\n")
	for _, place := range []struct {
		what string
		list []string
	}{{"the workspace", v.Writes.Workspace}, {"the home directory", v.Writes.Home}, {"other places", v.Writes.Elsewhere}} {
		if len(place.list) > 0 {
			p.line("it wrote in %s: %s", place.what, strings.Join(place.list, ", "))
		}
	}
	for _, c := range v.Closed {
		p.styled(warn, "stays closed: %s: %s", c.Path, c.Reason)
	}
	for _, n := range v.Notes {
		p.styled(warn, "note: %s", n)
	}
}

// block writes a value as JSON, as the member name when there is one.
func (p *page) block(name string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		p.err = broken("write the proposal", err)
		return
	}
	lead := ""
	if name != "" {
		lead = `"` + name + `": `
	}
	p.raw(tame(lead+indented(text)) + "\n")
}
