package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

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

func Test_15_4_OneKeyUnderARace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config/hcpx/audit.key")
	keys := make(chan string)
	for range 16 {
		go func() {
			key, err := makeKey(path)
			if err != nil {
				t.Error(err)
				keys <- ""
				return
			}
			keys <- string(key.seed)
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

// BenchmarkAppend reports the processor's time too, which other load on the machine does not change.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct{ durable, anchored bool }{{false, false}, {true, false}, {false, true}} {
		durable := c.durable
		b.Run(fmt.Sprintf("durable=%v,anchored=%v", durable, c.anchored), func(b *testing.B) {
			cfg := config(b.TempDir())
			cfg.SegmentBytes = 0
			if c.anchored {
				k := listen(b)
				cfg.Anchor, cfg.Socket = AnchorJournald, k.path
				go k.drain()
			}
			l := Open(cfg)
			e := Entry{Kind: Intent, ID: "01JABCDEFGHJKMNPQRSTVWXYZ0", Principal: "agent:claude-code", Tenant: "local", Pack: "ledger",
				Verb: "transfer", Args: json.RawMessage(`{"from":"a","to":"b","amount":12}`), Grant: []string{"agent:* may verb.exec.read"}}
			b.ReportAllocs()
			before := usage(b)
			for b.Loop() {
				if err := l.Append(e, durable); err != nil {
					b.Fatal(err)
				}
			}
			after := usage(b)
			b.ReportMetric(float64(cpu(before, after))/1e3/float64(b.N), "cpu-µs/op")
		})
	}
}

var entries = flag.Int("entries", 20_000, "how many entries BenchmarkVerify reads")

// BenchmarkVerify reports the time of an entry, on the clock and of the processor, and the most memory that the process had.
func BenchmarkVerify(b *testing.B) {
	cfg := config(b.TempDir())
	cfg.SegmentBytes = 0
	long(b, cfg, *entries)
	before := usage(b)
	for b.Loop() {
		if r, err := Verify(cfg); err != nil || !r.OK || r.Entries != uint64(*entries/2*2) {
			b.Fatal(r, err)
		}
	}
	after, n := usage(b), float64(b.N)*float64(*entries)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/n, "µs/entry")
	b.ReportMetric(float64(cpu(before, after))/1e3/n, "cpu-µs/entry")
	b.ReportMetric(float64(after.Maxrss)/1024, "MB-peak")
}

// long appends so many entries, of usual runs.
func long(t testing.TB, cfg Config, entries int) {
	t.Helper()
	l := Open(cfg)
	defer l.Close()
	code := 0
	for i := range entries / 2 {
		e := Entry{Kind: Intent, ID: fmt.Sprintf("01JABCDEFGHJKMNPQRST%06d", i), Principal: "agent:claude-code", Tenant: "local", Pack: "ledger",
			Verb: "transfer", Args: json.RawMessage(`{"from":"a","to":"b","amount":12}`), Grant: []string{"agent:* may verb.exec.read"}}
		if err := l.Append(e, false); err != nil {
			t.Fatal(err)
		}
		e.Kind, e.Exit, e.DurationMS = Outcome, &code, 12.5
		if err := l.Append(e, false); err != nil {
			t.Fatal(err)
		}
	}
}

// cpu is the processor's time between two looks, in nanoseconds.
func cpu(before, after syscall.Rusage) int64 {
	return after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
}

func usage(b *testing.B) (use syscall.Rusage) {
	b.Helper()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return use
}
