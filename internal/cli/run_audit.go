package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"hcpx/internal/audit"
	"hcpx/internal/protocol"
)

// entriesView answers audit tail and show.
type entriesView struct {
	Entries []audit.Entry `json:"entries"`
}

func (d *deps) auditConfig() (audit.Config, error) {
	a, err := d.app()
	if err != nil {
		return audit.Config{}, err
	}
	return a.AuditConfig(), nil
}

// unreadable is an audit that cannot be read at all.
func unreadable(err error) error {
	return protocol.Fail(protocol.AuditBroken, fmt.Sprintf("The audit cannot be read: %s.", protocol.Clause(err.Error()))).WithHint("hcpx audit verify")
}

func runAuditTail(_ context.Context, d *deps, o tailOptions) error {
	cfg, err := d.auditConfig()
	if err != nil {
		return err
	}
	entries, err := audit.Tail(cfg, o.Lines)
	if err != nil {
		return unreadable(err)
	}
	return d.showEntries(entries, "hcpx audit show ID")
}

func runAuditShow(_ context.Context, d *deps, o showOptions) error {
	cfg, err := d.auditConfig()
	if err != nil {
		return err
	}
	entries, err := audit.Find(cfg, o.ID)
	if err != nil {
		return unreadable(err)
	}
	if len(entries) == 0 {
		return protocol.Fail(protocol.NotFound, fmt.Sprintf("The audit has no entry of %q.", o.ID)).WithHint("hcpx audit tail")
	}
	v := entriesView{entries}
	return d.show(v, func(p *page) {
		for i, e := range entries {
			if i > 0 {
				p.raw("\n")
			}
			showEntry(p, e)
		}
	})
}

func (d *deps) showEntries(entries []audit.Entry, next string) error {
	if entries == nil {
		entries = []audit.Entry{}
	}
	return d.show(entriesView{entries}, func(p *page) {
		if len(entries) == 0 {
			p.line("nothing is recorded yet")
			return
		}
		var rows [][]cell
		for _, e := range entries {
			rows = append(rows, []cell{{shortTime(e.Time), faint}, {text: e.ID}, {e.Kind, kindStyle(e)}, {text: e.Principal}, {text: what(e)}, {e.Code, bad}})
		}
		p.table([]string{"time", "id", "kind", "principal", "what", "code"}, rows)
		p.next(next)
	})
}

func showEntry(p *page, e audit.Entry) {
	p.styled(strong, "%s %s", e.Kind, what(e))
	exitText := ""
	if e.Exit != nil {
		exitText = fmt.Sprint(*e.Exit)
	}
	p.facts(
		[2]string{"  seq", fmt.Sprint(e.Seq)}, [2]string{"  time", e.Time}, [2]string{"  id", e.ID}, [2]string{"  parent", e.Parent},
		[2]string{"  principal", e.Principal}, [2]string{"  session", e.Session}, [2]string{"  project", e.Project},
		[2]string{"  digest", e.Digest}, [2]string{"  args", string(e.Args)}, [2]string{"  confirm", e.Confirm},
		[2]string{"  plan", e.PlanHash}, [2]string{"  code", e.Code}, [2]string{"  message", e.Message}, [2]string{"  exit", exitText},
		[2]string{"  sandbox", string(e.Sandbox)}, [2]string{"  detail", string(e.Detail)},
	)
	for _, step := range e.Grant {
		p.line("  %s", step)
	}
}

// what names the command or act of an entry.
func what(e audit.Entry) string {
	switch {
	case e.Verb != "":
		return e.Pack + "/" + e.Verb
	case e.Act != "" && e.Pack != "":
		return e.Act + " " + e.Pack
	case e.Act != "":
		return e.Act
	default:
		return e.Pack
	}
}

func shortTime(t string) string {
	if len(t) > 19 {
		return t[:19] + "Z"
	}
	return t
}

func kindStyle(e audit.Entry) style {
	switch {
	case e.Kind == audit.Denial:
		return warn
	case e.Code != "":
		return bad
	default:
		return plain
	}
}

// runAuditVerify checks the whole chain; what does not fit is audit_broken (§15.4).
func runAuditVerify(_ context.Context, d *deps, o verifyOptions) error {
	cfg, err := d.auditConfig()
	if err != nil {
		return err
	}
	anchors, err := d.anchors(cfg, o.Head)
	if err != nil {
		return err
	}
	report, err := audit.VerifyAnchored(cfg, anchors)
	if err != nil {
		return unreadable(err)
	}
	if !report.OK {
		return protocol.Fail(protocol.AuditBroken, fmt.Sprintf("The audit does not verify; places that do not fit: %d.", uint64(len(report.Problems))+report.More)).
			With("report", report).WithHint("hcpx audit verify --json")
	}
	return d.show(report, func(p *page) {
		if report.Entries == 0 && report.Head.Seq == 0 {
			p.line("nothing is recorded yet")
			return
		}
		showReport(p, report)
		entries, verify := counted(report.Head.Seq, "entry", "entries"), "verify"
		if report.Head.Seq == 1 {
			verify = "verifies"
		}
		p.styled(good, "%s in %s %s against the signed head", entries, counted(report.Segments, "segment", "segments"), verify)
		if a := report.Anchors; a != nil {
			p.styled(good, "%s, the newest at entry %d", counted(a.Heads, "head that was kept fits", "heads that were kept fit"), a.Newest)
			return
		}
		p.next("hcpx audit head --json")
	})
}

// maxAnchors is more than any log of heads: at 300 bytes each, of three million entries.
const maxAnchors = 1 << 30

// bounded is a source that may have no end; past its bound it fails.
type bounded struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("it is longer than any log of heads")
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// anchors reads the heads that were kept; nil when none are asked for.
func (d *deps) anchors(cfg audit.Config, path string) (*audit.Anchors, error) {
	if path == "" {
		return nil, nil
	}
	from := d.env.In
	if path != "-" {
		if !filepath.IsAbs(path) {
			path = filepath.Join(d.env.Dir, path)
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, usage("audit verify", "the heads that were kept cannot be read: %s", protocol.Clause(err.Error()))
		}
		defer f.Close()
		from = f
	}
	anchors, err := audit.ReadAnchors(cfg, &bounded{from, maxAnchors})
	if err != nil {
		return nil, unreadable(err)
	}
	return anchors, nil
}

// showReport shows what was found: what does not fit, the traces of crashes, and the runs that were cut off.
func showReport(p *page, report audit.Report) {
	for _, x := range report.Problems {
		p.styled(bad, "  %s%s: %s", x.Kind, placeOf(x), x.Message)
	}
	for _, n := range report.Notes {
		p.styled(warn, "note: %s%s: %s", n.Kind, placeOf(n), n.Message)
	}
	for _, id := range report.Interrupted {
		p.styled(warn, "interrupted or still running: %s", id)
	}
}

func placeOf(x audit.Problem) string {
	at := ""
	if x.Seq > 0 {
		at += fmt.Sprintf(" at entry %d", x.Seq)
	}
	if x.Line > 0 {
		at += fmt.Sprintf(" (segment %d, line %d)", x.Segment, x.Line)
	}
	return at
}

func runAuditHead(_ context.Context, d *deps, _ healthOptions) error {
	cfg, err := d.auditConfig()
	if err != nil {
		return err
	}
	head, err := audit.ReadHead(cfg)
	switch {
	case errors.Is(err, audit.ErrHead):
		return protocol.Fail(protocol.AuditBroken, sentence(err.Error())).WithHint("hcpx audit verify")
	case err != nil:
		return unreadable(err)
	}
	return d.show(head, func(p *page) {
		p.facts([2]string{"entry", fmt.Sprint(head.Seq)}, [2]string{"hash", head.Hash}, [2]string{"time", head.Time})
		p.next("hcpx audit head --json > anchor.json")
	})
}
