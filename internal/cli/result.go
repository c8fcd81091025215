package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"hcpx/internal/protocol"
)

// answer prints a Result and gives its exit code (§6.2, §6.10): the envelope with --json, else the result
// on stdout and notes on it, or the error, on stderr (§6.5).
func (d *deps) answer(r protocol.Result) error {
	return d.respond(r, func(p *page) { showValue(p, r.Result) })
}

// answerPlan prints a plan as a page.
func (d *deps) answerPlan(r protocol.Result) error {
	return d.respond(r, func(p *page) { showPlan(p, r) })
}

func (d *deps) respond(r protocol.Result, text func(*page)) error {
	if d.json() {
		if err := d.write(append(r.AppendJSON(nil), '\n')); err != nil {
			return err
		}
	} else if r.OK {
		if err := d.show(r, text); err != nil {
			return err
		}
		for _, n := range r.Notes {
			d.note(n)
		}
	} else {
		p := d.errPage()
		d.explain(p, r.Error)
		if p.err != nil {
			return broken("write the answer", p.err)
		}
	}
	if r.OK {
		return nil
	}
	return exit(r.Error.Code.Exit())
}

// showValue prints a text result as it came and any other as indented JSON.
func showValue(p *page, raw json.RawMessage) {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		if s != "" {
			p.given(terminated(s))
		}
		return
	}
	p.given(indented(raw) + "\n")
}

// planGuard is what a plan says of the protected names (§10.2).
type planGuard struct {
	Guarded []string `json:"guarded"`
	May     []string `json:"may_change"`
}

// planView is what a plan says (§15.1), as far as a page shows it.
type planView struct {
	Argv      []string   `json:"argv"`
	Request   *planSend  `json:"request"`
	Cwd       string     `json:"cwd"`
	Env       []string   `json:"env"`
	Reads     []string   `json:"reads"`
	Writes    []string   `json:"writes"`
	Executes  []string   `json:"executes"`
	Private   planAccess `json:"private"`
	Base      planAccess `json:"base"`
	Backend   string     `json:"backend"`
	Degraded  []string   `json:"degraded"`
	Withheld  []string   `json:"withheld"`
	Isolation string     `json:"isolation"`
	Protected *planGuard `json:"protected"`
	Network   planNet    `json:"network"`
	Limits    planLimits `json:"limits"`
	Steps     []struct {
		ID   string `json:"id"`
		Pack string `json:"pack_id"`
		Verb string `json:"verb_key"`
	} `json:"steps"`
	Confirm struct {
		Needed  bool   `json:"needed"`
		Given   bool   `json:"given"`
		By      string `json:"by"`
		Message string `json:"message"`
	} `json:"confirm"`
	Grant []string `json:"grant"`
}

// planAccess is what a part of the world opens: what may be written or executed may be read too.
type planAccess struct {
	Reads    []string `json:"reads"`
	Writes   []string `json:"writes"`
	Executes []string `json:"executes"`
	Devices  []string `json:"devices"`
}

type planNet struct {
	Mode  string   `json:"mode"`
	Hosts []string `json:"hosts"`
}

type planLimits struct {
	Wall      string `json:"wall"`
	CPU       string `json:"cpu"`
	Memory    uint64 `json:"memory"`
	Processes uint64 `json:"processes"`
	Files     uint64 `json:"files"`
	FileSize  uint64 `json:"file_size"`
	Output    uint64 `json:"output"`
	Note      string `json:"note"`
}

// words are the limits in one line; one that the plan does not name is left out.
func (l planLimits) words() string {
	var parts []string
	if l.CPU != "" {
		parts = append(parts, "cpu "+l.CPU)
	}
	for _, n := range []struct {
		name  string
		value uint64
		bytes bool
	}{{"memory", l.Memory, true}, {"processes", l.Processes, false}, {"open files", l.Files, false}, {"one file", l.FileSize, true}, {"output", l.Output, true}} {
		if n.value > 0 {
			parts = append(parts, n.name+" "+amount(n.value, n.bytes))
		}
	}
	return strings.Join(parts, ", ")
}

// amount writes a number, of bytes in the largest unit that it is a multiple of.
func amount(n uint64, bytes bool) string {
	unit := ""
	if bytes {
		unit = " bytes"
		for _, u := range []string{" KiB", " MiB", " GiB"} {
			if n%1024 != 0 {
				break
			}
			n, unit = n/1024, u
		}
	}
	return fmt.Sprint(n, unit)
}

func readPlan(raw json.RawMessage) planView {
	var v planView
	if err := json.Unmarshal(raw, &v); err != nil {
		return planView{} // a plan of another shape is shown by --json
	}
	return v
}

func showPlan(p *page, r protocol.Result) {
	v := readPlan(r.Result)
	p.styled(strong, "%s/%s would run:", r.PackID, r.VerbKey)
	if len(v.Argv) > 0 {
		p.raw("  " + quoted(v.Argv) + "\n")
	}
	if v.Request != nil {
		p.raw("\n")
		v.Request.show(p, "  ")
	}
	for _, s := range v.Steps {
		p.line("  step %s: %s/%s", s.ID, s.Pack, s.Verb)
	}
	p.raw("\n")
	p.facts(
		[2]string{"in", v.Cwd},
		[2]string{"reads", strings.Join(v.Reads, " ")},
		[2]string{"writes", strings.Join(v.Writes, " ")},
		[2]string{"protected", protectedWord(v.Protected)},
		[2]string{"executes", strings.Join(v.Executes, " ")},
		[2]string{"withheld", strings.Join(v.Withheld, " ")},
		[2]string{"private", strings.Join(append(v.Private.Writes, readOnly(v.Private.Reads)...), " ")},
		[2]string{"also reads", folded(v.Base.Reads)},
		[2]string{"also runs", strings.Join(v.Base.Executes, " ")},
		[2]string{"devices", strings.Join(v.Base.Devices, " ")},
		[2]string{"environment", strings.Join(v.Env, " ")},
		[2]string{"network", strings.TrimSpace(v.Network.Mode + " " + strings.Join(v.Network.Hosts, " "))},
		[2]string{"isolation", isolationWord(v)},
		[2]string{"time", v.Limits.Wall},
		[2]string{"limits", v.Limits.words()},
		[2]string{"of limits", v.Limits.Note},
		[2]string{weakness(v), strings.Join(v.Degraded, " ")},
		[2]string{"confirm", confirmWord(v)},
		[2]string{"granted", lastOf(v.Grant)},
	)
	run := "hcpx exec " + r.PackID + " " + r.VerbKey
	if v.Confirm.Needed && !v.Confirm.Given {
		run += " --confirm"
	}
	p.next(run + " …")
}

// folded names the many places that every command may read by where they lie; --json has each.
func folded(paths []string) string {
	var tops []string
	count := map[string]int{}
	for _, path := range paths {
		parts := strings.SplitN(path, "/", 3)
		top := "/" + parts[min(1, len(parts)-1)]
		if count[top]++; count[top] == 1 {
			tops = append(tops, top)
		}
	}
	for i, top := range tops {
		tops[i] = fmt.Sprintf("%s (%d)", top, count[top])
	}
	return strings.Join(tops, " ")
}

func readOnly(paths []string) []string {
	shown := make([]string, len(paths))
	for i, path := range paths {
		shown[i] = path + " (read only)"
	}
	return shown
}

// weakness is what the degraded rules are: outside the sandbox nothing of them holds (§10.3).
func weakness(v planView) string {
	if v.Isolation == "sandbox" {
		return "weaker here"
	}
	return "not held"
}

func isolationWord(v planView) string {
	switch {
	case v.Isolation == "native-local":
		return "none: it runs outside the sandbox, with all your rights (native-local)"
	case v.Backend == "":
		return v.Isolation
	}
	return v.Isolation + ", by " + v.Backend
}

// notKept is what no list of names can promise (§10.2).
const notKept = ". Nothing else is: a script that you run later, or a repository below the root, is as the command leaves it"

// protectedWord says what of the list of §10.2 the command changes by design; "" when it changes no workspace.
func protectedWord(v *planGuard) string {
	switch {
	case v == nil:
		return ""
	case len(v.May) == 0:
		return "a closed list of names in the root and git's directories is put back if it changes them: " + strings.Join(v.Guarded, "; ") + notKept
	}
	return "it may change by design: " + strings.Join(v.May, " ") + "; all others of a closed list are put back: " + strings.Join(v.Guarded, "; ") + notKept
}

func confirmWord(v planView) string {
	switch {
	case !v.Confirm.Needed:
		return "not needed"
	case v.Confirm.Given:
		return "given by the " + v.Confirm.By
	default:
		return fmt.Sprintf("needed: %s", v.Confirm.Message)
	}
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}
