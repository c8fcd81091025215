package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// wholeLines reads the lines of the newest segment, without their ends.
func wholeLines(t *testing.T, cfg Config) (path string, lines []string) {
	t.Helper()
	segs, err := segments(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	path = segmentPath(cfg.Dir, segs[len(segs)-1].no)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// put writes the lines of a segment.
func put(t *testing.T, path string, lines []string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// forgery is a well-chained entry after a line, as one writes it who has no key. How it ends is its MAC.
func forgery(t *testing.T, after string, end func(start string) string) string {
	t.Helper()
	b, ok := parseBrief([]byte(after))
	if !ok {
		t.Fatalf("no entry: %s", after)
	}
	sum := sha256.Sum256([]byte(after))
	e := struct {
		Entry
		MAC string `json:"mac,omitempty"`
	}{Entry: Entry{Seq: b.Seq + 1, Time: "2026-01-02T03:04:05Z", Kind: Change, ID: fmt.Sprint("forged-", b.Seq), Principal: "human:eve", Act: "forged", Prev: hex.EncodeToString(sum[:])}}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return end(strings.TrimSuffix(string(text), "}"))
}

func macked(mac string) func(string) string {
	return func(start string) string { return start + `,"mac":"` + mac + `"}` }
}

// macs are the ways to end an entry without the key.
var macs = map[string]func(start string) string{
	"no MAC":       func(start string) string { return start + "}" },
	"an empty MAC": macked(""),
	"zeros":        macked(base64.StdEncoding.EncodeToString(make([]byte, 32))),
	"a plain hash": func(start string) string {
		sum := sha256.Sum256([]byte(start))
		return macked(base64.StdEncoding.EncodeToString(sum[:]))(start)
	},
	"two MACs": func(start string) string {
		return macked(base64.StdEncoding.EncodeToString(make([]byte, 32)))(start + `,"mac":"` + base64.StdEncoding.EncodeToString(make([]byte, 32)) + `"`)
	},
	"a MAC of another name": func(start string) string {
		return start + `,"MAC":"` + base64.StdEncoding.EncodeToString(make([]byte, 32)) + `"}`
	},
	"a MAC and more": func(start string) string {
		return macked(base64.StdEncoding.EncodeToString(make([]byte, 32)))(start)[:len(start)+8+macLength] + `","code":""}`
	},
}

// refused holds that a forgery is a problem at once, is never taken in, and stays a problem when the log goes on.
func refused(t *testing.T, cfg Config, want string) {
	t.Helper()
	if r := verify(t, cfg); r.OK || !slices.Contains(kinds(r.Problems), want) || len(r.Notes) > 0 {
		t.Errorf("before: want %s: %+v", want, r)
	}
	for _, name := range []string{"later", "much-later"} {
		appendRuns(t, cfg, name, 2)
		if r := verify(t, cfg); r.OK || r.Head.Seq == 0 || slices.Contains(kinds(r.Notes), "adopted") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	tail, err := Tail(cfg, 100)
	if err != nil || slices.ContainsFunc(tail, func(e Entry) bool { return e.Adopted > 0 }) {
		t.Errorf("adopted: %+v, %v", tail, err)
	}
}

func Test_15_4_AnEntryWithoutTheKeysMACIsRefused(t *testing.T) {
	for name, end := range macs {
		t.Run(name, func(t *testing.T) {
			cfg := filled(t, 10)
			path, lines := wholeLines(t, cfg)
			put(t, path, append(lines, forgery(t, lines[len(lines)-1], end)))
			refused(t, cfg, "forged")
		})
	}
}

// As many as a crash can leave, in a segment of their own too.
func Test_15_4_NoNumberOfForgedEntriesIsTakenIn(t *testing.T) {
	for _, n := range []int{2, batch - 1, batch, batch + 1} {
		for _, fresh := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, fresh segment %v", n, fresh), func(t *testing.T) {
				cfg := filled(t, 10)
				path, lines := wholeLines(t, cfg)
				last := lines[len(lines)-1]
				if fresh {
					lines, path = nil, segmentPath(cfg.Dir, int(verify(t, cfg).Segments)+1)
				}
				for range n {
					last = forgery(t, last, macs["zeros"])
					lines = append(lines, last)
				}
				put(t, path, lines)
				if r := verify(t, cfg); len(r.Problems) != n {
					t.Errorf("%d problems of %d forged entries: %+v", len(r.Problems), n, r.Problems)
				}
				refused(t, cfg, "forged")
			})
		}
	}
}

// The head of before the last entry, and another last entry in its chain.
func Test_15_4_AReplacedLastEntryUnderAnOldHeadIsRefused(t *testing.T) {
	cfg := filled(t, 10)
	head := headText(t, cfg)
	appendOne(t, cfg, false)
	path, lines := wholeLines(t, cfg)
	last := len(lines) - 1
	lines[last] = forgery(t, lines[last-1], macs["zeros"])
	put(t, path, lines)
	if err := os.WriteFile(cfg.Dir+"/head", head, 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, cfg, "forged")
}

// Entries that the head does not cover are as safe as those that it does.
func Test_15_4_EntriesBeyondTheHeadCannotBeChanged(t *testing.T) {
	mac := func(text string) string { return text[len(text)-macLength-2:] }
	for _, c := range []struct {
		name, want string
		do         func(l []string) []string // the lines beyond the head
	}{
		{"changed", "forged", func(l []string) []string { l[1] = strings.Replace(l[1], "ledger", "lodger", 1); return l }},
		{"changed and chained anew", "forged", func(l []string) []string {
			l[1] = strings.Replace(l[1], "ledger", "lodger", 1)
			sum := sha256.Sum256([]byte(l[1]))
			at := strings.Index(l[2], `"prev":"`) + 8
			l[2] = l[2][:at] + hex.EncodeToString(sum[:]) + l[2][at+64:]
			return l
		}},
		{"with the MACs of two entries changed round", "forged", func(l []string) []string {
			a, b := mac(l[0]), mac(l[1])
			l[0], l[1] = strings.TrimSuffix(l[0], a)+b, strings.TrimSuffix(l[1], b)+a
			return l
		}},
		{"with a MAC cut short", "forged", func(l []string) []string { l[1] = l[1][:len(l[1])-12] + `"}`; return l }},
		{"with a MAC in other letters", "forged", func(l []string) []string {
			m := mac(l[1])
			l[1] = strings.TrimSuffix(l[1], m) + strings.ToUpper(m)
			return l
		}},
		{"with a blank more", "forged", func(l []string) []string { l[1] = strings.Replace(l[1], ":", ": ", 1); return l }},
		{"with a line end of another kind", "forged", func(l []string) []string { l[1] += "\r"; return l }},
		{"reordered", "reordered", func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }},
		{"repeated", "reordered", func(l []string) []string { return slices.Insert(l, 1, l[0]) }},
		{"removed", "removed", func(l []string) []string { return slices.Delete(l, 1, 2) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := filled(t, 10)
			cfg.SegmentBytes = 1 << 20
			_, before := wholeLines(t, cfg)
			unsigned(t, cfg, 2)
			path, lines := wholeLines(t, cfg)
			if len(lines) != len(before)+4 {
				t.Fatalf("%d lines, before %d", len(lines), len(before))
			}
			put(t, path, append(slices.Clone(lines[:len(before)]), c.do(slices.Clone(lines[len(before):]))...))
			if r := verify(t, cfg); r.OK || !slices.Contains(kinds(r.Problems), c.want) {
				t.Errorf("want %s: %+v", c.want, r)
			}
			appendRuns(t, cfg, "later", 2)
			if r := verify(t, cfg); r.OK || slices.Contains(kinds(r.Notes), "adopted") {
				t.Errorf("after: %+v", r)
			}
		})
	}
}

// An entry of another audit is no entry of this one, under another key and under the same.
func Test_15_4_AnEntryOfAnotherAuditIsRefused(t *testing.T) {
	for _, same := range []bool{false, true} {
		t.Run(fmt.Sprintf("same key %v", same), func(t *testing.T) {
			cfg, other := filled(t, 10), config(t.TempDir())
			want := "forged"
			if same {
				other.KeyPath, want = cfg.KeyPath, "changed"
			}
			appendRuns(t, other, "run", 10)
			appendOne(t, other, true)
			path, lines := wholeLines(t, cfg)
			_, foreign := wholeLines(t, other)
			put(t, path, append(lines, foreign[len(foreign)-1]))
			refused(t, cfg, want)
		})
	}
}

// Each byte of a line is under its MAC, so one changed entry is named where it stands, once.
func Test_15_4_EachByteOfAnEntryIsUnderItsMAC(t *testing.T) {
	cfg := filled(t, 1)
	_, k := keyed(t, cfg)
	path, lines := wholeLines(t, cfg)
	for i := range lines[0] {
		forged := []byte(lines[0])
		forged[i] ^= 1
		if k.wrote(forged) || k.wrote(forged[:i]) {
			t.Errorf("byte %d changed unseen", i)
		}
	}
	put(t, path, []string{strings.Replace(lines[0], "ledger", "lodger", 1), lines[1]})
	if r := verify(t, cfg); len(r.Problems) != 1 || r.Problems[0].Kind != "changed" || r.Problems[0].Line != 1 {
		t.Errorf("%+v", r.Problems)
	}
}

// A forged outcome ends no run.
func Test_15_4_AForgedOutcomeEndsNoRun(t *testing.T) {
	cfg := filled(t, 2)
	l := Open(cfg)
	if err := l.Append(Entry{Kind: Intent, ID: "cut-off"}, true); err != nil {
		t.Fatal(err)
	}
	path, lines := wholeLines(t, cfg)
	outcome := forgery(t, lines[len(lines)-1], macs["zeros"])
	outcome = strings.NewReplacer(`"change"`, `"outcome"`, `"forged-5"`, `"cut-off"`).Replace(outcome)
	put(t, path, append(lines, outcome))
	if r := verify(t, cfg); r.OK || !slices.Equal(r.Interrupted, []string{"cut-off"}) {
		t.Errorf("%+v", r)
	}
}

// Where the key is not at hand, verify checks the chain and says that this is all.
func Test_15_4_WithoutTheKeyOnlyTheChainIsChecked(t *testing.T) {
	cfg := filled(t, 10)
	remove(t, cfg.KeyPath)
	r := verify(t, cfg)
	if len(r.Problems) != 1 || r.Problems[0].Kind != "key-missing" || !strings.Contains(r.Problems[0].Message, "only the chain") || r.Entries != 20 || r.Head.Seq != 0 {
		t.Errorf("%+v", r)
	}
	edit(t, cfg, 1, func(l []string) []string { l[1] = strings.Replace(l[1], "ledger", "lodger", 1); return l })
	if r := verify(t, cfg); !slices.Equal(kinds(r.Problems), []string{"changed", "key-missing"}) {
		t.Errorf("%+v", r)
	}
}

// With a head that is gone, the entries are checked all the same.
func Test_15_4_WithoutTheHeadEachEntryIsChecked(t *testing.T) {
	cfg := filled(t, 10)
	path, lines := wholeLines(t, cfg)
	put(t, path, append(lines, forgery(t, lines[len(lines)-1], macs["zeros"])))
	remove(t, cfg.Dir+"/head")
	if r := verify(t, cfg); !slices.Equal(kinds(r.Problems), []string{"changed", "head-missing"}) {
		t.Errorf("%+v", r)
	}
}

// FuzzForge puts any line after the head: whoever wrote it had no key.
func FuzzForge(f *testing.F) {
	f.Add([]byte(`{"seq":5}`))
	f.Add([]byte(`{"seq":5,"mac":"` + strings.Repeat("A", macLength) + `"}`))
	f.Add([]byte(`,"mac":"` + strings.Repeat("A", macLength) + `"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if text = bytes.ReplaceAll(text, []byte("\n"), nil); len(text) == 0 {
			return
		}
		cfg := filled(t, 2)
		path, lines := wholeLines(t, cfg)
		put(t, path, append(lines, string(text)))
		if r := verify(t, cfg); r.OK {
			t.Errorf("%+v", r)
		}
		appendRuns(t, cfg, "later", 1)
		if r := verify(t, cfg); r.OK || slices.Contains(kinds(r.Notes), "adopted") {
			t.Errorf("after: %+v", r)
		}
	})
}
