package audit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

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
	{"a forged MAC", forgeMAC, "head-forged"},
	{"a moved signature", moveSignature, "head-forged"},
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

// An audit that is gone as a whole looks like one that never was; what was done since tells them apart.
func Test_15_4_AnAuditThatIsGoneIsMissed(t *testing.T) {
	used := false
	cfg := Config{Dir: filepath.Join(t.TempDir(), "audit"), KeyPath: filepath.Join(t.TempDir(), "audit.key"), Now: time.Now, Used: func() bool { return used }}
	look := func(missing bool) {
		t.Helper()
		report, err := Verify(cfg)
		if err != nil || report.OK == missing {
			t.Errorf("verify: %+v %v", report, err)
		}
		_, tail := Tail(cfg, 1)
		_, find := Find(cfg, "1")
		for name, err := range map[string]error{"look": Look(cfg), "tail": tail, "find": find} {
			if errors.Is(err, ErrLost) != missing {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	look(false)
	add := func() {
		t.Helper()
		log := Open(cfg)
		if err := errors.Join(log.Append(Entry{Kind: Change, ID: "1", Act: "install"}, true), log.Close()); err != nil {
			t.Fatal(err)
		}
	}
	add()
	used = true
	look(false)
	if err := os.RemoveAll(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	look(true)
	add() // what comes after does not hide it
	if report, err := Verify(cfg); err != nil || len(report.Problems) != 1 || report.Problems[0].Kind != "break" {
		t.Errorf("%+v %v", report, err)
	}
}
