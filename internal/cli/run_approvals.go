package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"hcpx/internal/approval"
	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

func runApprovalsList(_ context.Context, d *deps, o approvalOptions) error {
	_, err := look(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ApprovalsView, *protocol.Error) {
		return l.Approvals(s, o.All)
	}, func(p *page, v lifecycle.ApprovalsView) {
		if len(v.Approvals) == 0 {
			p.line("nothing is asked")
			return
		}
		var rows [][]cell
		for _, a := range v.Approvals {
			rows = append(rows, []cell{{text: a.ID}, {string(a.State), stateStyle(a.State)}, {text: string(a.Principal)},
				{text: a.PackID + "/" + a.VerbKey}, {text: visible(a.Message)}, {age(a), faint}})
		}
		p.table([]string{"id", "state", "who asks", "what", "message", "age"}, rows)
		p.next("hcpx approvals show ID")
	})
	return err
}

func stateStyle(s approval.State) style {
	switch s {
	case approval.Pending:
		return warn
	case approval.Approved:
		return good
	default:
		return faint
	}
}

func age(a lifecycle.ApprovalView) string {
	return (time.Duration(a.AgeSeconds) * time.Second).String()
}

func runApprovalsShow(ctx context.Context, d *deps, o approvalOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ApprovalView, *protocol.Error) {
		return l.Approval(ctx, s, o.ID)
	}, func(p *page, v lifecycle.ApprovalView) {
		showApproval(p, v)
		if v.State == approval.Pending {
			p.next("hcpx approvals approve "+v.ID+previewFlag(v.Preview), "hcpx approvals reject "+v.ID)
		}
	})
}

func previewFlag(v *lifecycle.PreviewView) string {
	if v == nil || v.Hash == "" {
		return ""
	}
	return " --preview " + v.Hash
}

// shownPlan is what an approval shows of a plan, and of each step of a composite.
type shownPlan struct {
	Argv      []string   `json:"argv"`
	Request   *planSend  `json:"request"`
	Stdin     string     `json:"stdin"`
	Cwd       string     `json:"cwd"`
	Env       []string   `json:"env"`
	Reads     []string   `json:"reads"`
	Writes    []string   `json:"writes"`
	Executes  []string   `json:"executes"`
	Withheld  []string   `json:"withheld"`
	Network   planNet    `json:"network"`
	Isolation string     `json:"isolation"`
	Protected *planGuard `json:"protected"`

	Credential struct {
		Owner string `json:"owner"`
		Kept  string `json:"kept"`
	} `json:"credential"`
	Steps []struct {
		ID      string          `json:"id"`
		Pack    string          `json:"pack_id"`
		Verb    string          `json:"verb_key"`
		Digest  string          `json:"digest"`
		Args    json.RawMessage `json:"args"`
		Confirm bool            `json:"confirm"`
		Preview string          `json:"preview"`
		Blocked string          `json:"blocked"`
		Plan    *shownPlan      `json:"plan"`
	} `json:"steps"`
}

// showApproval shows exactly what runs, every character that a terminal would not show written out.
func showApproval(p *page, v lifecycle.ApprovalView) {
	p.styled(strong, "%s asks to run %s/%s", string(v.Principal), v.PackID, v.VerbKey)
	if v.Message != "" {
		p.line("  %s", visible(v.Message))
	}
	p.raw("\n")
	p.facts([2]string{"request", v.ID}, [2]string{"state", stateWord(v)}, [2]string{"asked", fmt.Sprintf("%s ago, until %s", age(v), v.ExpiresAt.Format(time.RFC3339))},
		[2]string{"pack", v.PackID + " " + v.Version}, [2]string{"digest", v.Digest}, [2]string{"operation", string(v.Operation)},
		[2]string{"session", visible(v.Where.Session)}, [2]string{"project", v.Where.Project}, [2]string{"asked in", visible(v.Where.Dir)},
		[2]string{"workspace", visible(v.Where.Workspace)}, [2]string{"run", v.Run})
	p.raw("\n" + p.paint(faint, "arguments:") + "\n" + indent(visibleLines(indented(v.Args)), "  ") + "\n")
	var plan shownPlan
	if err := json.Unmarshal(v.Plan, &plan); err != nil {
		p.line("the plan cannot be read: %s", visible(string(v.Plan)))
		return
	}
	showShownPlan(p, plan, "")
	if w := v.Preview; w != nil {
		p.raw("\n" + p.paint(faint, "preview by "+clean(v.PackID+"/"+w.VerbKey)+":") + "\n")
		showPreview(p, w)
	}
}

func stateWord(v lifecycle.ApprovalView) string {
	if v.By == "" {
		return string(v.State)
	}
	return string(v.State) + " by " + string(v.By)
}

func showShownPlan(p *page, v shownPlan, in string) {
	if len(v.Argv) > 0 {
		p.raw(in + p.paint(faint, "runs:") + " " + visible(quoted(v.Argv)) + "\n")
	}
	if v.Request != nil {
		v.Request.show(p, in)
	}
	if v.Stdin != "" {
		p.raw(in + p.paint(faint, "is given on stdin:") + "\n" + indent(visibleLines(v.Stdin), in+"  ") + "\n")
	}
	list := func(words []string) string { return visible(quoted(words)) }
	p.facts(
		[2]string{in + "in", visible(v.Cwd)}, [2]string{in + "reads", list(v.Reads)}, [2]string{in + "writes", list(v.Writes)},
		[2]string{in + "executes", list(v.Executes)}, [2]string{in + "withheld", list(v.Withheld)}, [2]string{in + "protected", protectedWord(v.Protected)},
		[2]string{in + "environment", list(v.Env)}, [2]string{in + "network", visible(strings.TrimSpace(v.Network.Mode + " " + strings.Join(v.Network.Hosts, " ")))},
		[2]string{in + "isolation", v.Isolation}, [2]string{in + "credential", credentialWord(v.Credential.Owner, v.Credential.Kept)},
	)
	for _, s := range v.Steps {
		what := "step " + s.ID + ": " + s.Pack + "/" + s.Verb
		switch {
		case s.Blocked != "":
			what += ", cannot run: " + visible(s.Blocked)
		case string(s.Args) != "null" && len(s.Args) > 0:
			what += " " + visible(string(s.Args))
		case s.Confirm:
			what += ", with arguments that earlier steps decide; it will ask again"
		default:
			what += ", with arguments that earlier steps decide"
		}
		if s.Preview != "" {
			what += "; it will ask by itself, with its preview " + visible(s.Preview)
		}
		p.raw(in + clean(what) + "\n")
		if s.Plan != nil {
			showShownPlan(p, *s.Plan, in+"  ")
		}
	}
}

// credentialWord says whose credential runs it, and under which name it is kept.
func credentialWord(owner, kept string) string {
	switch {
	case owner == "":
		return ""
	case kept == "":
		return "of " + visible(owner)
	}
	return "of " + visible(owner) + ", kept as " + visible(kept)
}

func showPreview(p *page, v *lifecycle.PreviewView) {
	if v.Error != nil {
		p.raw("  " + p.paint(bad, "it failed: ") + visible(v.Error.Message) + "\n")
		return
	}
	var s string
	if json.Unmarshal(v.Result, &s) != nil {
		s = indented(v.Result)
	}
	p.raw(indent(visibleLines(s), "  ") + "\n")
	p.line("  hash %s", v.Hash)
}

func indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n"+by)
}

// visible writes out every character that has no shape of its own: controls, marks of direction, blanks that look like
// others, and those that are not there to the eye. Who approves must see each of them.
func visible(s string) string {
	var b strings.Builder
	for _, r := range clean(s) {
		if r != ' ' && (!unicode.IsGraphic(r) || unicode.In(r, unicode.Zs, unicode.Cf, unicode.Co) || invisible(r)) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// invisible are letters, marks and symbols that draw nothing.
func invisible(r rune) bool {
	return r == 0x2800 || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// visibleLines is visible for text of several lines.
func visibleLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = visible(line)
	}
	return strings.Join(lines, "\n")
}

func runApprove(ctx context.Context, d *deps, o approvalOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ApprovalView, *protocol.Error) {
		var failed *protocol.Error
		given := lifecycle.ApproveOptions{Preview: o.Preview}
		if d.mayAsk(s) && !o.Yes {
			given.Ask = func(v lifecycle.ApprovalView) bool {
				showApproval(d.errPage(), v)
				yes, err := d.ask("Approve it?")
				if err != nil {
					failed = asFailure(err)
				}
				return yes
			}
		}
		v, err := l.Approve(ctx, s, o.ID, given)
		if failed != nil {
			err = failed
		}
		return v, err
	}, func(p *page, v lifecycle.ApprovalView) {
		p.raw(p.paint(good, "approved ") + clean(v.ID) + ": " + clean(string(v.Principal)) + " may run " + clean(v.PackID+"/"+v.VerbKey) + " once, until " + v.ExpiresAt.Format(time.RFC3339) + "\n")
		p.next("hcpx approvals withdraw " + v.ID)
	})
}

func runReject(_ context.Context, d *deps, o approvalOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ApprovalView, *protocol.Error) {
		return l.Reject(s, o.ID, "")
	}, showClosed)
}

func runWithdraw(_ context.Context, d *deps, o approvalOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ApprovalView, *protocol.Error) {
		return l.Withdraw(s, o.ID, "")
	}, showClosed)
}

func showClosed(p *page, v lifecycle.ApprovalView) {
	p.raw(p.paint(warn, string(v.State)) + " " + clean(v.ID) + ": " + clean(v.PackID+"/"+v.VerbKey) + " of " + clean(string(v.Principal)) + "\n")
}

// watchEvery is how often watch looks for new requests.
const watchEvery = 300 * time.Millisecond

// runApprovalsWatch prints each pending request once, as it comes, until a signal ends it.
func runApprovalsWatch(ctx context.Context, d *deps, _ approvalOptions) error {
	a, s, err := d.appAndSession()
	if err != nil {
		return err
	}
	if d.env.Ready != nil {
		<-d.env.Ready // a signal is the way to end it
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for seen := map[string]bool{}; ; {
		v, refusal := a.Health().Approvals(s, false)
		if refusal != nil {
			return refusal
		}
		for _, one := range v.Approvals {
			if one.State != approval.Pending || seen[one.ID] {
				continue
			}
			seen[one.ID] = true
			if err := d.show(one, func(p *page) { showAsked(p, one) }); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func showAsked(p *page, v lifecycle.ApprovalView) {
	p.raw(clean(v.ID) + " " + p.paint(warn, clean(string(v.Principal))) + " asks to run " + clean(v.PackID+"/"+v.VerbKey) + ": " + visible(v.Message) + "\n")
	p.next("hcpx approvals show " + v.ID)
}

// completeApprovals completes the ids of open requests.
func (d *deps) completeApprovals(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const quiet = cobra.ShellCompDirectiveNoFileComp
	a, s, err := d.appAndSession()
	if err != nil || len(args) > 0 {
		return nil, quiet
	}
	v, refusal := a.Health().Approvals(s, false)
	if refusal != nil {
		return nil, quiet
	}
	var ids []string
	for _, one := range v.Approvals {
		ids = append(ids, one.ID)
	}
	return ids, quiet
}
