package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand for another process that appends to the same audit.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_CHILD"); dir != "" {
		if err := child(dir, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child appends a number of runs, each of an intent and an outcome; -1 is without end.
func child(dir string, args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	cfg := config(dir)
	if args[0] == "full" { // a file may not grow past this: the write that would is cut short
		cfg.SegmentBytes = 1 << 20
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 5000, Max: 5000}); err != nil {
			return err
		}
	}
	l := Open(cfg)
	for i := 0; i != n; i++ {
		id := fmt.Sprintf("%s-%d", args[0], i)
		for _, kind := range []string{Intent, Outcome} {
			if err := l.Append(Entry{Kind: kind, ID: id, Principal: "human:ada"}, i%8 == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func process(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "AUDIT_CHILD="+dir)
	return cmd
}

func config(dir string) Config {
	return Config{Dir: filepath.Join(dir, "home/audit"), KeyPath: filepath.Join(dir, "config/hcpx/audit.key"),
		Now: time.Now, SegmentBytes: 4 << 10}
}

// filled has n runs over several segments.
func filled(t *testing.T, n int) Config {
	t.Helper()
	cfg := config(t.TempDir())
	appendRuns(t, cfg, "run", n)
	return cfg
}

func appendRuns(t *testing.T, cfg Config, name string, n int) {
	t.Helper()
	l := Open(cfg)
	defer l.Close()
	for i := range n {
		for _, kind := range []string{Intent, Outcome} {
			e := Entry{Kind: kind, ID: fmt.Sprintf("%s-%d", name, i), Principal: "agent:claude-code", Pack: "ledger",
				Args: json.RawMessage(`{"amount":12345678901234567890,"note":"<a & b>"}`)}
			if err := l.Append(e, i%4 == 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func verify(t *testing.T, cfg Config) Report {
	t.Helper()
	r, err := Verify(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK != (len(r.Problems) == 0) {
		t.Errorf("ok %v with %v", r.OK, r.Problems)
	}
	return r
}

func kinds(list []Problem) []string {
	var k []string
	for _, p := range list {
		k = append(k, p.Kind)
	}
	slices.Sort(k)
	return slices.Compact(k)
}

func Test_15_4_AChainVerifies(t *testing.T) {
	cfg := filled(t, 40)
	r := verify(t, cfg)
	if !r.OK || r.Entries != 80 || r.Segments < 3 || r.Head.Seq != 80 || len(r.Notes)+len(r.Interrupted) > 0 {
		t.Errorf("report: %+v", r)
	}
	h, err := ReadHead(cfg)
	if err != nil || h.Hash != r.Head.Hash {
		t.Errorf("head: %+v, %v", h, err)
	}
	var seqs uint64
	if err := Read(cfg, 11, func(e Entry, raw []byte) error {
		seqs++
		if e.Seq != 10+seqs || !bytes.Contains(raw, []byte(`{"amount":12345678901234567890,"note":"<a & b>"}`)) {
			return fmt.Errorf("entry %d: %s", e.Seq, raw)
		}
		return nil
	}); err != nil || seqs != 70 {
		t.Errorf("read %d: %v", seqs, err)
	}
	tail, err := Tail(cfg, 30)
	if err != nil || len(tail) != 30 || tail[0].Seq != 51 || tail[29].Seq != 80 {
		t.Errorf("tail: %d entries, %v", len(tail), err)
	}
	found, err := Find(cfg, "run-7")
	if err != nil || len(found) != 2 || found[0].Kind != Intent || found[1].Kind != Outcome {
		t.Errorf("found %+v, %v", found, err)
	}
}

func Test_15_4_NoAuditIsSound(t *testing.T) {
	cfg := config(t.TempDir())
	if r := verify(t, cfg); !r.OK || r.Entries != 0 {
		t.Errorf("report: %+v", r)
	}
	if _, err := ReadHead(cfg); err == nil {
		t.Error("a head where there is no audit")
	}
	if tail, err := Tail(cfg, 3); err != nil || len(tail) != 0 {
		t.Errorf("tail: %v, %v", tail, err)
	}
	if _, err := os.Stat(cfg.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reading made the audit: %v", err)
	}
}

func Test_15_4_FilesAreForTheOwnerOnly(t *testing.T) {
	cfg := filled(t, 1)
	for path, want := range map[string]os.FileMode{cfg.Dir: 0o700, cfg.KeyPath: 0o600, cfg.Dir + "/head": 0o600, segmentPath(cfg.Dir, 1): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if err := os.Chmod(cfg.KeyPath, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Open(cfg).Append(Entry{Kind: Denial}, true); err == nil {
		t.Error("a key that others read was used")
	}
}

// edit rewrites the lines of a segment.
func edit(t *testing.T, cfg Config, no int, fn func(lines []string) []string) {
	t.Helper()
	path := segmentPath(cfg.Dir, no)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(fn(strings.SplitAfter(string(data), "\n")), "")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tampering is every way to spoil a log of several segments, with the kinds that must be named.
var tampering = []struct {
	name string
	do   func(t *testing.T, cfg Config, last int)
	want string
}{
	{"a changed entry", func(t *testing.T, cfg Config, _ int) {
		edit(t, cfg, 2, func(l []string) []string { l[1] = strings.Replace(l[1], "ledger", "lodger", 1); return l })
	}, "changed"},
	{"a changed number", func(t *testing.T, cfg Config, _ int) {
		edit(t, cfg, 1, func(l []string) []string { l[1] = strings.Replace(l[1], `"seq":2,`, `"seq":3,`, 1); return l })
	}, "removed"},
	{"a changed first entry", func(t *testing.T, cfg Config, _ int) {
		edit(t, cfg, 1, func(l []string) []string { l[0] = strings.Replace(l[0], "ledger", "lodger", 1); return l })
	}, "changed"},
	{"a changed last entry", func(t *testing.T, cfg Config, last int) {
		edit(t, cfg, last, func(l []string) []string {
			l[len(l)-2] = strings.Replace(l[len(l)-2], "ledger", "lodger", 1)
			return l
		})
	}, "changed"},
	{"a removed entry", func(t *testing.T, cfg Config, _ int) {
		edit(t, cfg, 2, func(l []string) []string { return slices.Delete(l, 1, 2) })
	}, "removed"},
	{"a removed first entry", func(t *testing.T, cfg Config, _ int) {
		edit(t, cfg, 1, func(l []string) []string { return l[1:] })
	}, "removed"},
	{"reordered entries", func(t *testing.T, cfg Config, _ int) {
		edit(t, cfg, 2, func(l []string) []string { l[1], l[2] = l[2], l[1]; return l })
	}, "reordered"},
	{"a repeated entry", func(t *testing.T, cfg Config, _ int) {
		edit(t, cfg, 2, func(l []string) []string { return slices.Insert(l, 1, l[1]) })
	}, "reordered"},
	{"an inserted line", func(t *testing.T, cfg Config, _ int) {
		edit(t, cfg, 2, func(l []string) []string { return slices.Insert(l, 1, "{}\n") })
	}, "malformed"},
	{"a cut tail", func(t *testing.T, cfg Config, last int) {
		edit(t, cfg, last, func(l []string) []string { return l[:len(l)-2] })
	}, "tail-cut"},
	{"a tail cut within a line", func(t *testing.T, cfg Config, last int) {
		edit(t, cfg, last, func(l []string) []string { l[len(l)-2] = l[len(l)-2][:20]; return l })
	}, "tail-cut"},
	{"a missing last segment", func(t *testing.T, cfg Config, last int) { remove(t, segmentPath(cfg.Dir, last)) }, "tail-cut"},
	{"a missing middle segment", func(t *testing.T, cfg Config, _ int) { remove(t, segmentPath(cfg.Dir, 2)) }, "segment-missing"},
	{"a missing first segment", func(t *testing.T, cfg Config, _ int) { remove(t, segmentPath(cfg.Dir, 1)) }, "segment-missing"},
	{"all segments missing", func(t *testing.T, cfg Config, last int) {
		for no := range last {
			remove(t, segmentPath(cfg.Dir, no+1))
		}
	}, "segment-missing"},
	{"a missing head", func(t *testing.T, cfg Config, _ int) { remove(t, cfg.Dir+"/head") }, "head-missing"},
	{"a forged head", func(t *testing.T, cfg Config, last int) {
		other := filled(t, 2)
		data, err := os.ReadFile(other.Dir + "/head")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cfg.Dir+"/head", data, 0o600); err != nil {
			t.Fatal(err)
		}
	}, "head-forged"},
	{"an empty head", func(t *testing.T, cfg Config, _ int) {
		if err := os.Truncate(cfg.Dir+"/head", 0); err != nil {
			t.Fatal(err)
		}
	}, "head-forged"},
	{"another key", func(t *testing.T, cfg Config, _ int) {
		remove(t, cfg.KeyPath)
		if _, err := makeKey(cfg.KeyPath); err != nil {
			t.Fatal(err)
		}
	}, "head-forged"},
	{"a missing key", func(t *testing.T, cfg Config, _ int) { remove(t, cfg.KeyPath) }, "key-missing"},
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// covered by the next append: what the checks of an append cannot see is found by the chain anyhow.
func Test_15_4_TamperingIsFoundAndStaysFound(t *testing.T) {
	for _, c := range tampering {
		t.Run(c.name, func(t *testing.T) {
			cfg := filled(t, 40)
			segs, err := segments(cfg.Dir)
			if err != nil {
				t.Fatal(err)
			}
			c.do(t, cfg, len(segs))
			if r := verify(t, cfg); r.OK || !slices.Contains(kinds(r.Problems), c.want) {
				t.Errorf("%v, want %s: %+v", kinds(r.Problems), c.want, r.Problems)
			}
			appendRuns(t, cfg, "later", 3)
			if r := verify(t, cfg); r.OK {
				t.Error("a later append covered it up")
			}
			appendRuns(t, cfg, "much-later", 3)
			r := verify(t, cfg)
			if r.OK || r.Head.Seq == 0 || slices.Contains(kinds(r.Problems), "tail-cut") {
				t.Errorf("the log does not go on: %+v", r)
			}
			if found, err := Find(cfg, "much-later-2"); err != nil || len(found) != 2 {
				t.Errorf("found %v, %v", found, err)
			}
		})
	}
}

// Rolling everything back to an earlier moment, key in hand, is what only an anchor outside shows.
func Test_15_4_AnOldCopyDiffersFromTheAnchor(t *testing.T) {
	cfg := filled(t, 1)
	anchor, err := ReadHead(cfg)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, cfg.Dir+"/head")
	remove(t, segmentPath(cfg.Dir, 1))
	appendRuns(t, cfg, "again", 1)
	r := verify(t, cfg)
	if !r.OK || r.Head.Hash == anchor.Hash {
		t.Errorf("a whole new chain must verify, and must not have the anchored head: %+v", r)
	}
}

func Test_15_4_AnIntentWithoutOutcomeIsAnInterruptedRun(t *testing.T) {
	cfg := filled(t, 2)
	l := Open(cfg)
	for _, id := range []string{"second", "first"} {
		if err := l.Append(Entry{Kind: Intent, ID: id}, true); err != nil {
			t.Fatal(err)
		}
	}
	r := verify(t, cfg)
	if !r.OK || !slices.Equal(r.Interrupted, []string{"second", "first"}) {
		t.Errorf("report: %+v", r)
	}
}

// unsigned restores the head of before, as a crash between the two writes leaves it.
func unsigned(t *testing.T, cfg Config, n int) {
	t.Helper()
	head, err := os.ReadFile(cfg.Dir + "/head")
	if err != nil {
		t.Fatal(err)
	}
	appendRuns(t, cfg, "crashed", n)
	if err := os.WriteFile(cfg.Dir+"/head", head, 0o600); err != nil {
		t.Fatal(err)
	}
}

func Test_15_4_EntriesBeyondTheHeadAreTakenInOpenly(t *testing.T) {
	cfg := filled(t, 10)
	unsigned(t, cfg, 5)
	if r := verify(t, cfg); !r.OK || !slices.Equal(kinds(r.Notes), []string{"unsigned"}) {
		t.Errorf("before: %+v", r)
	}
	appendRuns(t, cfg, "later", 1)
	r := verify(t, cfg)
	if !r.OK || r.Entries != 32 || !slices.Equal(kinds(r.Notes), []string{"adopted"}) {
		t.Errorf("after: %+v", r)
	}
	tail, err := Tail(cfg, 2)
	if err != nil || tail[0].Adopted != 10 || tail[1].Adopted != 0 {
		t.Errorf("tail: %+v, %v", tail, err)
	}
}

func Test_15_4_MoreThanACrashCanLeaveIsNotTakenIn(t *testing.T) {
	cfg := filled(t, 10)
	unsigned(t, cfg, batch)
	if r := verify(t, cfg); !slices.Equal(kinds(r.Problems), []string{"unsigned"}) {
		t.Errorf("before: %+v", r)
	}
	appendRuns(t, cfg, "later", 1)
	if r := verify(t, cfg); !slices.Equal(kinds(r.Problems), []string{"break"}) {
		t.Errorf("after: %+v", r)
	}
}

func Test_15_4_ATornLastLineIsReportedAndKept(t *testing.T) {
	cfg := filled(t, 10)
	h, err := ReadHead(cfg)
	if err != nil {
		t.Fatal(err)
	}
	path := segmentPath(cfg.Dir, h.Segment)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":21,"time":"20`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if r := verify(t, cfg); !r.OK || !slices.Equal(kinds(r.Notes), []string{"torn"}) {
		t.Errorf("before: %+v", r)
	}
	appendRuns(t, cfg, "later", 2)
	r := verify(t, cfg)
	if !r.OK || !slices.Equal(kinds(r.Notes), []string{"torn"}) || r.Entries != 25 {
		t.Errorf("after: %+v", r)
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.HasSuffix(data, []byte(`"time":"20`)) {
		t.Errorf("the torn line was dropped: %v", err)
	}
	if err := os.WriteFile(path, bytes.TrimSuffix(data, []byte("0")), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, cfg); r.OK {
		t.Error("a torn line may be changed unseen")
	}
}

func Test_15_4_WhatCannotBeWrittenIsAnError(t *testing.T) {
	t.Run("no directory", func(t *testing.T) {
		cfg := config(t.TempDir())
		if err := os.MkdirAll(filepath.Dir(cfg.Dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cfg.Dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Open(cfg).Append(Entry{Kind: Intent}, true); err == nil {
			t.Error("appended to nothing")
		}
	})
	t.Run("a full disk", func(t *testing.T) {
		dir := t.TempDir()
		if err := process(t, dir, "full", "-1").Run(); err == nil {
			t.Fatal("appended to a full disk")
		}
		cfg := config(dir)
		if r := verify(t, cfg); !r.OK || r.Entries == 0 || len(r.Notes) > 0 {
			t.Errorf("the failed append left a trace: %+v", r)
		}
		appendRuns(t, cfg, "later", 2)
		if r := verify(t, cfg); !r.OK || len(r.Notes) > 0 {
			t.Errorf("report: %+v", r)
		}
	})
	t.Run("a read-only audit", func(t *testing.T) {
		if os.Geteuid() == 0 {
			t.Skip("root writes everywhere")
		}
		cfg := filled(t, 1)
		if err := os.Chmod(cfg.Dir+"/head", 0o400); err != nil {
			t.Fatal(err)
		}
		if err := Open(cfg).Append(Entry{Kind: Intent}, true); err == nil {
			t.Error("appended read-only")
		}
	})
	t.Run("arguments that are no JSON", func(t *testing.T) {
		cfg := filled(t, 1)
		if err := Open(cfg).Append(Entry{Kind: Intent, Args: json.RawMessage("{")}, true); err == nil {
			t.Error("appended half an entry")
		}
		if r := verify(t, cfg); !r.OK || r.Entries != 2 {
			t.Errorf("report: %+v", r)
		}
	})
}

func Test_15_4_ProcessesAppendAtOnce(t *testing.T) {
	dir := t.TempDir()
	var cmds []*exec.Cmd
	for i := range 8 {
		cmd := process(t, dir, fmt.Sprint("p", i), "40")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	r := verify(t, config(dir))
	if !r.OK || r.Entries != 8*80 || len(r.Notes)+len(r.Interrupted) > 0 || r.Segments < 2 {
		t.Errorf("report: %+v", r)
	}
}

func Test_15_4_GoroutinesAppendAtOnce(t *testing.T) {
	cfg := config(t.TempDir())
	l := Open(cfg)
	errs := make(chan error)
	for i := range 16 {
		go func() { errs <- l.Append(Entry{Kind: Change, ID: fmt.Sprint(i)}, i%2 == 0) }()
	}
	for range 16 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if r := verify(t, cfg); !r.OK || r.Entries != 16 {
		t.Errorf("report: %+v", r)
	}
}

func Test_15_4_KilledAtRandomMomentsTheChainHolds(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		cmd := process(t, dir, fmt.Sprint("k", i), "-1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(5_000+rand.IntN(30_000)) * time.Microsecond) // the moment of death is what is tried
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if r := verify(t, config(dir)); !r.OK || len(r.Interrupted) > i+1 {
			t.Fatalf("after %d kills: %+v", i+1, r)
		}
	}
	if r := verify(t, config(dir)); r.Entries == 0 {
		t.Error("nothing was ever appended")
	}
}

func Test_15_4_OneKeyUnderARace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config/hcpx/audit.key")
	keys := make(chan string)
	for range 16 {
		go func() {
			key, err := makeKey(path)
			if err != nil {
				t.Error(err)
			}
			keys <- string(key)
		}()
	}
	seen := map[string]bool{}
	for range 16 {
		seen[<-keys] = true
	}
	left, err := filepath.Glob(filepath.Dir(path) + "/.*-*")
	if len(seen) != 1 || err != nil || len(left) > 0 {
		t.Errorf("%d keys, left over %v, %v", len(seen), left, err)
	}
	if err := os.WriteFile(path, []byte("hcpx-audit-ed25519 AAAA\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := makeKey(path); err == nil {
		t.Error("a damaged key was replaced")
	}
}

// spoiled is an audit whose files hold anything, with a key.
func spoiled(t *testing.T, segment, head []byte) Config {
	cfg := config(t.TempDir())
	cfg.KeyPath = filepath.Join(cfg.Dir, "..", "key")
	key := []byte(keyPrefix + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(make([]byte, 32))) + "\n")
	if err := errors.Join(os.MkdirAll(cfg.Dir, 0o700), os.WriteFile(cfg.KeyPath, key, 0o600),
		os.WriteFile(segmentPath(cfg.Dir, 1), segment, 0o600), os.WriteFile(cfg.Dir+"/head", head, 0o600)); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func seeds(f *testing.F) {
	f.Add([]byte("{\"seq\":1,\"kind\":\"intent\",\"id\":\"a\",\"prev\":\""+zeroHash+"\"}\n{\"seq\":2"), []byte("{}"))
	f.Add([]byte("\n\n{}\n"), []byte(""))
	f.Add([]byte("{\"seq\":1,\"kind\":\"break\",\"detail\":{\"reason\":\"torn\"}}\n"), bytes.Repeat([]byte(" "), headSize))
}

func FuzzVerify(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, segment, head []byte) {
		cfg := spoiled(t, segment, head)
		if r := verify(t, cfg); r.OK {
			t.Errorf("what no key signed verifies: %+v", r)
		}
		tail, err := Tail(cfg, 3)
		if err != nil || len(tail) > 3 {
			t.Error(tail, err)
		}
		if _, err := Find(cfg, "a"); err != nil {
			t.Error(err)
		}
	})
}

func FuzzAppend(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, segment, head []byte) {
		cfg := spoiled(t, segment, head)
		appendRuns(t, cfg, "later", 1)
		if r := verify(t, cfg); r.OK || r.Head.Seq == 0 || slices.Contains(kinds(r.Problems), "tail-cut") {
			t.Errorf("after an append: %+v", r)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, durable := range []bool{false, true} {
		b.Run(fmt.Sprintf("durable=%v", durable), func(b *testing.B) {
			cfg := config(b.TempDir())
			cfg.SegmentBytes = 0
			l := Open(cfg)
			e := Entry{Kind: Intent, ID: "01JABCDEFGHJKMNPQRSTVWXYZ0", Principal: "agent:claude-code", Tenant: "local", Pack: "ledger",
				Verb: "transfer", Args: json.RawMessage(`{"from":"a","to":"b","amount":12}`), Grant: []string{"agent:* may verb.exec.read"}}
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Append(e, durable); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	cfg := config(b.TempDir())
	cfg.SegmentBytes = 0
	l := Open(cfg)
	const n = 20_000
	for i := range n {
		if err := l.Append(Entry{Kind: Denial, ID: fmt.Sprint(i), Principal: "agent:claude-code"}, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := Verify(cfg); err != nil || !r.OK || r.Entries != n {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/entry")
}
