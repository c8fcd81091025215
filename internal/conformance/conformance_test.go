package conformance

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/protocol"
)

// refuser is a runtime that refuses everything, and counts what it was asked.
type refuser struct{ asked map[string]int }

func (r *refuser) New(string) (Runtime, error) { return r, nil }

func (r *refuser) no(what string) *protocol.Error {
	if r.asked != nil {
		r.asked[what]++
	}
	return protocol.Fail(protocol.InternalError, "Nothing works here.")
}

func (r *refuser) Exec(context.Context, protocol.Session, []byte) protocol.Result {
	e := r.no("exec")
	e.Step = 1
	return protocol.Denied("", "", e)
}

func (r *refuser) Plan(ctx context.Context, s protocol.Session, e []byte) protocol.Result {
	return r.Exec(ctx, s, e)
}

func (r *refuser) Lint([]string) ([]protocol.Issue, *protocol.Error) {
	return []protocol.Issue{protocol.NewIssue("pack.unreadable", "surface.json", "Nothing can be read.")}, nil
}

func (r *refuser) Install(protocol.Session, []string, bool) *protocol.Error { return r.no("install") }
func (r *refuser) Activate(protocol.Session, []string) *protocol.Error      { return r.no("activate") }
func (r *refuser) Connect(protocol.Session, string) *protocol.Error         { return r.no("connect") }
func (r *refuser) Deactivate(protocol.Session, []string) *protocol.Error    { return r.no("deactivate") }
func (r *refuser) Disconnect(protocol.Session, string) *protocol.Error      { return r.no("disconnect") }
func (r *refuser) Uninstall(protocol.Session, string) *protocol.Error       { return r.no("uninstall") }
func (r *refuser) Allow(protocol.Session, []string) *protocol.Error         { return r.no("allow") }
func (r *refuser) Grant(protocol.Session, []byte) *protocol.Error           { return r.no("grant") }
func (r *refuser) Approve(protocol.Session, string) *protocol.Error         { return r.no("approve") }
func (r *refuser) Reject(protocol.Session, string) *protocol.Error          { return r.no("reject") }
func (r *refuser) Command(protocol.Session, []string, []byte) ([]byte, int) {
	return []byte(`{"error":{"code":"internal"}}`), r.no("command").Code.Exit()
}
func (r *refuser) Trace() Trace { return Trace{} }
func (r *refuser) Close() error { return nil }

func (r *refuser) Availability(protocol.Session, []string) ([]byte, *protocol.Error) {
	return nil, r.no("availability")
}

// TestHCP_1_1_1_AnyRuntimeCanBeJudged runs the vectors on a runtime that shares no code with ours; it refuses
// everything and so passes nothing.
func TestHCP_1_1_1_AnyRuntimeCanBeJudged(t *testing.T) {
	var told []string
	target := &refuser{asked: map[string]int{}}
	report, err := Run(t.Context(), target, Options{Done: func(o Outcome) { told = append(told, o.Vector) }})
	if err != nil {
		t.Fatal(err)
	}
	if report.OK || report.Passed != 0 || report.Failed != len(told) {
		t.Errorf("passed %d, failed %d of %d", report.Passed, report.Failed, len(told))
	}
	for _, o := range report.Vectors {
		if !strings.HasPrefix(o.Detail, "line ") {
			t.Errorf("%s fails without its line: %q", o.Vector, o.Detail)
		}
	}
	if got := told[:9]; !slices.Equal(got, Published()) {
		t.Errorf("the published vectors come first: got %v", got)
	}
}

// consenter is a runtime that allows everything and says that it ran.
type consenter struct{ refuser }

func (c *consenter) New(string) (Runtime, error) { return c, nil }

func (c *consenter) Exec(context.Context, protocol.Session, []byte) protocol.Result {
	return protocol.Result{OK: true, Result: json.RawMessage("{}")}
}

func (c *consenter) Command(protocol.Session, []string, []byte) ([]byte, int) {
	return []byte(`{"ok":true,"result":{}}`), 0
}

func (c *consenter) Lint([]string) ([]protocol.Issue, *protocol.Error)        { return nil, nil }
func (c *consenter) Install(protocol.Session, []string, bool) *protocol.Error { return nil }
func (c *consenter) Activate(protocol.Session, []string) *protocol.Error      { return nil }
func (c *consenter) Connect(protocol.Session, string) *protocol.Error         { return nil }
func (c *consenter) Deactivate(protocol.Session, []string) *protocol.Error    { return nil }
func (c *consenter) Disconnect(protocol.Session, string) *protocol.Error      { return nil }
func (c *consenter) Uninstall(protocol.Session, string) *protocol.Error       { return nil }
func (c *consenter) Allow(protocol.Session, []string) *protocol.Error         { return nil }
func (c *consenter) Approve(protocol.Session, string) *protocol.Error         { return nil }
func (c *consenter) Reject(protocol.Session, string) *protocol.Error          { return nil }
func (c *consenter) Grant(protocol.Session, []byte) *protocol.Error           { return nil }

func TestARuntimeThatAllowsEverythingPassesNothing(t *testing.T) {
	report, err := Run(t.Context(), &consenter{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range report.Vectors {
		if o.OK {
			t.Errorf("%s passes", o.Vector)
		}
	}
}

func TestAVectorIsRunByItsName(t *testing.T) {
	target := &refuser{asked: map[string]int{}}
	report, err := Run(t.Context(), target, Options{Vectors: []string{"step01.envelope"}})
	if err != nil || len(report.Vectors) != 1 || target.asked["exec"] != 1 {
		t.Errorf("got %+v, %v; asked %v", report, err, target.asked)
	}
	if _, err := Run(t.Context(), target, Options{Vectors: []string{"step11.nothing"}}); err == nil {
		t.Error("an unknown name is no error")
	}
}

func TestReportIsStable(t *testing.T) {
	got, err := json.Marshal(Report{Vectors: []Outcome{{Vector: "v", Section: "§1", Rules: []string{}, About: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"ok":false,"passed":0,"failed":0,"vectors":[{"vector":"v","section":"§1","published":false,"rules":[],"about":"a","ok":false}]}`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
}

// TestHCP_14_5_1_PublishedVectors: there is a vector for each name of §14.5 and for each step of §6.3.
func TestHCP_14_5_1_PublishedVectors(t *testing.T) {
	vectors, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Published() {
		if !slices.ContainsFunc(vectors, func(v Vector) bool { return v.Name == name && v.Published }) {
			t.Errorf("no vector %s", name)
		}
	}
	for _, step := range []string{"01", "02", "03", "04", "05", "06", "07", "08", "09", "10"} {
		i := slices.IndexFunc(vectors, func(v Vector) bool { return strings.HasPrefix(v.Name, "step"+step+".") })
		if i < 0 {
			t.Errorf("no vector for step %s", step)
			continue
		}
		if !slices.ContainsFunc(vectors[i].Script, func(l Line) bool { return l.Words[0] == "ran" }) {
			t.Errorf("%s does not prove that nothing later ran", vectors[i].Name)
		}
	}
}

func TestEveryVectorIsWhole(t *testing.T) {
	vectors, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := Requirements()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			for _, id := range v.Rules {
				if !slices.ContainsFunc(rules, func(r Requirement) bool { return r.ID == id }) {
					t.Errorf("there is no rule %s", id)
				}
			}
			used := map[string]bool{"script": true}
			for _, l := range v.Script {
				switch l.Words[0] {
				case "exec", "plan":
					used[l.Words[1]], used[l.Words[2]] = true, true
				case "words", "stream":
					used[l.Words[1]], used[l.Words[2]] = true, true
				case "availability":
					used[l.Words[1]] = true
				case "put":
					used[l.Rest] = true
				}
			}
			for _, f := range v.files {
				if !used[f.name] {
					t.Errorf("%s is used nowhere", f.name)
				}
				if _, err := parseJSON(f.data); strings.HasSuffix(f.name, ".want") && err != nil {
					t.Errorf("%s: %v", f.name, err)
				}
				delete(used, f.name)
			}
			for name := range used {
				t.Errorf("%s is missing", name)
			}
			if src, err := os.ReadFile(filepath.Join("vectors", v.Name+".txtar")); err != nil || string(v.format()) != string(src) {
				t.Errorf("written back, it differs: %s", cmp.Diff(string(src), string(v.format())))
			}
		})
	}
}

func TestGoldPacksCanBeBroken(t *testing.T) {
	v, err := parse("v", []byte("About.\nsection: §2\n-- script --\n-- new --\nhello\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := &play{ctx: t.Context(), vector: v, dir: t.TempDir()}
	lines := "gold ledger\n" +
		`merge ledger/policy.json {"verbs":{"balance":null,"transfer":{"confirm":true}},"x":{"y":1}}` + "\n" +
		"append ledger/HARNESS.md One more line.\n" +
		"remove ledger/opening\nchmod ledger/bin/ledger 600\nlink ledger/link target\nput ledger/a/new new\n"
	for text := range strings.Lines(lines) {
		w, err := parse("v", []byte("About.\nsection: §2\n-- script --\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.do(w.Script[0]); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(p.packs, "ledger", name))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	want := `{"surface_id":"ledger","verbs":{"transfer":{"operation":"write","privacy":{"land":"personal"},"confirm":true}},"x":{"y":1}}`
	if got := read("policy.json"); got != want {
		t.Errorf("merged: %s", got)
	}
	if got := read("HARNESS.md"); !strings.HasSuffix(got, "\nOne more line.\n") {
		t.Errorf("appended: %q", got[len(got)-40:])
	}
	if got := read("a/new"); got != "hello\n" {
		t.Errorf("put: %q", got)
	}
	if _, err := os.Lstat(filepath.Join(p.packs, "ledger", "opening")); !os.IsNotExist(err) {
		t.Errorf("removed: %v", err)
	}
	if info, err := os.Stat(filepath.Join(p.packs, "ledger", "bin", "ledger")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	if got, err := os.Readlink(filepath.Join(p.packs, "ledger", "link")); got != "target" {
		t.Errorf("link: %q, %v", got, err)
	}
}
