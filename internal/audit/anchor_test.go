package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keeper is the system's log as a test has it: a real datagram socket out of the audit's reach.
type keeper struct {
	path string
	conn *net.UnixConn
}

func listen(t testing.TB) *keeper {
	t.Helper()
	dir, err := os.MkdirTemp("", "log") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{path: filepath.Join(dir, "s")}
	k.open(t)
	t.Cleanup(func() {
		k.conn.Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return k
}

func (k *keeper) open(t testing.TB) {
	t.Helper()
	var err error
	if k.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: k.path}); err != nil {
		t.Fatal(err)
	}
	if err := k.conn.SetReadBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
}

// take reads n messages, each as it came.
func (k *keeper) take(t testing.TB, n int) (all []string) {
	t.Helper()
	buf := make([]byte, 64<<10)
	for range n {
		size, err := k.conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(buf[:size]))
	}
	return all
}

// drain reads until the socket is closed.
func (k *keeper) drain() (all []string) {
	buf := make([]byte, 64<<10)
	for {
		size, err := k.conn.Read(buf)
		if err != nil {
			return all
		}
		all = append(all, string(buf[:size]))
	}
}

// anchoredAt is an audit whose heads go to a log.
func anchoredAt(t testing.TB, kind string, k *keeper) Config {
	cfg := config(t.TempDir())
	cfg.Anchor, cfg.Socket = kind, k.path
	return cfg
}

func change(t testing.TB, cfg Config, n int) {
	t.Helper()
	l := Open(cfg)
	for i := range n {
		if err := l.Append(Entry{Kind: Change, ID: fmt.Sprint(i), Principal: "human:ada", Act: "grant"}, i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func against(t testing.TB, cfg Config, text string) Report {
	t.Helper()
	a, err := ReadAnchors(cfg, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := VerifyAnchored(cfg, a)
	if err != nil || r.OK != (len(r.Problems) == 0) || r.Anchors == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return r
}

func Test_15_4_EachHeadIsAnchored(t *testing.T) {
	for kind, form := range map[string][2]string{
		AnchorJournald: {"MESSAGE=hcpx-audit-head 1 seq=", "\nPRIORITY=5\nSYSLOG_FACILITY=10\nSYSLOG_IDENTIFIER=hcpx-audit\n"},
		AnchorSyslog:   {"<85>", ""},
	} {
		t.Run(kind, func(t *testing.T) {
			k := listen(t)
			cfg := anchoredAt(t, kind, k)
			change(t, cfg, 5)
			got := k.take(t, 5)
			for i, m := range got {
				if !strings.HasPrefix(m, form[0]) || !strings.HasSuffix(m, form[1]) || !strings.Contains(m, fmt.Sprintf("hcpx-audit-head 1 seq=%d hash=", i+1)) {
					t.Errorf("message %d: %q", i, m)
				}
			}
			r := against(t, cfg, strings.Join(got, "\n"))
			if !r.OK || r.Anchors.Heads != 5 || r.Anchors.Newest != 5 || r.Anchors.Other != 0 || len(r.Notes) > 0 {
				t.Errorf("%+v %+v", r, r.Anchors)
			}
		})
	}
}

// Who owns the files and reads the key can make every one of these verify. Only what was kept outside shows it.
func Test_15_4_WhatOnlyAnAnchorFinds(t *testing.T) {
	copyOf := func(t *testing.T, cfg Config) func() {
		t.Helper()
		kept := t.TempDir()
		if err := os.CopyFS(kept, os.DirFS(cfg.Dir)); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := errors.Join(os.RemoveAll(cfg.Dir), os.CopyFS(cfg.Dir, os.DirFS(kept))); err != nil {
				t.Fatal(err)
			}
		}
	}
	silent := func(cfg Config) Config { cfg.Anchor = AnchorNone; return cfg }
	for _, tt := range []struct {
		name    string
		forge   func(t *testing.T, cfg Config, older func())
		problem string
	}{
		{"a cut tail with a forged head", func(_ *testing.T, _ Config, older func()) { older() }, "The chain ends at entry 4, and entry 5 was anchored"},
		{"another history after the cut", func(t *testing.T, cfg Config, older func()) {
			older()
			change(t, silent(cfg), 9)
		}, "Entry 5 was anchored (line 5 of what was kept), and is not in the audit as it was then."},
		{"a new audit", func(t *testing.T, cfg Config, _ func()) {
			if err := os.RemoveAll(cfg.Dir); err != nil {
				t.Fatal(err)
			}
			change(t, silent(cfg), 9)
		}, "Entry 1 was anchored"},
		{"no audit", func(t *testing.T, cfg Config, _ func()) {
			if err := os.RemoveAll(cfg.Dir); err != nil {
				t.Fatal(err)
			}
		}, "The chain ends at entry 0, and entry 1 was anchored"},
		{"a new key and a new audit", func(t *testing.T, cfg Config, _ func()) {
			if err := errors.Join(os.RemoveAll(cfg.Dir), os.Remove(cfg.KeyPath)); err != nil {
				t.Fatal(err)
			}
			change(t, silent(cfg), 9)
		}, "this key did not make"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := listen(t)
			cfg := anchoredAt(t, AnchorJournald, k)
			change(t, cfg, 4)
			older := copyOf(t, cfg)
			change(t, cfg, 4)
			kept := strings.Join(lines(k.take(t, 8)), "\n")
			if r := against(t, cfg, kept); !r.OK {
				t.Fatalf("before: %+v", r)
			}
			tt.forge(t, cfg, older)
			if r := verify(t, cfg); !r.OK {
				t.Fatalf("found without an anchor: %+v", r)
			}
			r := against(t, cfg, kept)
			if r.OK || !slices.ContainsFunc(r.Problems, func(p Problem) bool { return strings.Contains(p.Message, tt.problem) }) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// lines are messages of journald as `journalctl -o cat` shows them.
func lines(messages []string) (all []string) {
	for _, m := range messages {
		text, _, _ := strings.Cut(strings.TrimPrefix(m, "MESSAGE="), "\n")
		all = append(all, text)
	}
	return all
}

// What a log adds around a head, and what else stands in it, is no trouble; what was cut or made by others is told.
func Test_15_4_HeadsAreFoundInAnyLog(t *testing.T) {
	k := listen(t)
	cfg := anchoredAt(t, AnchorJournald, k)
	change(t, cfg, 3)
	all := lines(k.take(t, 3))
	h, err := ReadHead(cfg)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := json.Marshal(map[string]string{"MESSAGE": all[1], "_UID": "1000"})
	if err != nil {
		t.Fatal(err)
	}
	other := anchoredAt(t, AnchorJournald, k)
	other.KeyPath = cfg.KeyPath
	change(t, other, 1)
	elsewhere := lines(k.take(t, 1))[0]
	for _, tt := range []struct {
		name, text string
		heads      uint64
		other      uint64
		want       []string
	}{
		{"syslog", "Jan  2 03:04:05 host cron[1]: x\nJan  2 03:04:05 host hcpx-audit: " + all[2] + "\n", 1, 0, nil},
		{"the journal as JSON", string(journal), 1, 0, []string{"anchor-behind"}},
		{"audit head --json", string(shown) + "\n", 1, 0, nil},
		{"twice the same", all[2] + "\n" + all[2], 1 + 1, 0, nil},
		{"carriage returns", all[2] + "\r\n", 1, 0, nil},
		{"another audit of this user", all[2] + "\n" + elsewhere, 1, 1, nil},
		{"another audit alone", elsewhere, 0, 1, []string{"anchor-none"}},
		{"nothing", "", 0, 0, []string{"anchor-none"}},
		{"one line without end", strings.Repeat("x", 1<<20), 0, 0, []string{"anchor-none"}},
		{"a cut line", all[2][:len(all[2])-3], 0, 0, []string{"anchor-malformed"}},
		{"a changed hash", strings.Replace(all[2], "hash=", "hash=0", 1), 0, 0, []string{"anchor-forged", "anchor-malformed"}},
		{"a changed number", strings.Replace(all[2], "seq=3", "seq=4", 1), 0, 0, []string{"anchor-forged"}},
		{"a changed signature", strings.Replace(string(shown), `"seq":3`, `"seq":2`, 1), 0, 0, []string{"anchor-forged"}},
		{"a head without a number", `{"seq":0,"sig":""}`, 0, 0, []string{"anchor-malformed"}},
	} {
		r := against(t, cfg, tt.text)
		got := slices.Concat(kinds(r.Problems), kinds(r.Notes))
		fits := len(got) == 0 && len(tt.want) == 0 || len(got) == 1 && slices.Contains(tt.want, got[0])
		if !fits || r.Anchors.Heads != tt.heads || r.Anchors.Other != tt.other {
			t.Errorf("%s: %v %+v", tt.name, got, r.Anchors)
		}
	}
}

// Where heads must be anchored and cannot be, nothing is recorded and nothing may run; when the log is back, all goes on.
func Test_15_4_WithoutItsAnchorNothingIsRecorded(t *testing.T) {
	k := listen(t)
	cfg := anchoredAt(t, AnchorSyslog, k)
	l := Open(cfg)
	defer l.Close()
	add := func() error { return l.Append(Entry{Kind: Change, ID: "x", Act: "grant"}, true) }
	if err := errors.Join(add(), Look(cfg)); err != nil {
		t.Fatal(err)
	}
	k.conn.Close()
	for range 2 {
		err := add()
		if err == nil || !strings.Contains(err.Error(), "its head can't be anchored in syslog at "+k.path) {
			t.Fatalf("recorded: %v", err)
		}
		if err := Look(cfg); err == nil || !strings.Contains(err.Error(), "audit.anchor") {
			t.Errorf("the quick look: %v", err)
		}
		if err := stands(cfg, 1); err != nil {
			t.Error(err)
		}
	}
	if err := os.Remove(k.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	k.open(t)
	if err := errors.Join(add(), add(), Look(cfg), stands(cfg, 3)); err != nil {
		t.Fatal(err)
	}
	if r := against(t, cfg, strings.Join(k.take(t, 2), "\n")); !r.OK || r.Anchors.Newest != 3 {
		t.Errorf("%+v", r)
	}
}

// The same at every first time: no key, no head, a head that does not fit, a torn line, a full segment.
func Test_15_4_WithoutItsAnchorTheFilesStayAsTheyWere(t *testing.T) {
	for name, spoil := range map[string]func(cfg Config) error{
		"nothing yet": func(cfg Config) error { return os.RemoveAll(cfg.Dir) },
		"a bad head":  func(cfg Config) error { return os.WriteFile(cfg.Dir+"/head", []byte("no head"), 0o600) },
		"a torn line": func(cfg Config) error {
			f, err := os.OpenFile(segmentPath(cfg.Dir, 1), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(`{"seq`)
			return errors.Join(err, f.Close())
		},
		"a full segment": func(Config) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			change(t, cfg, 3)
			if err := spoil(cfg); err != nil {
				t.Fatal(err)
			}
			before, err := Verify(cfg)
			if err != nil {
				t.Fatal(err)
			}
			silent := cfg
			cfg.Anchor, cfg.Socket, cfg.SegmentBytes = AnchorJournald, filepath.Join(t.TempDir(), "none"), 1
			for range 2 {
				if err := Open(cfg).Append(Entry{Kind: Change, ID: "x"}, true); err == nil {
					t.Fatal("recorded")
				}
			}
			after := verify(t, cfg)
			if after.Entries != before.Entries || after.OK != before.OK || !slices.Equal(kinds(after.Problems), kinds(before.Problems)) {
				t.Errorf("before %+v\nafter %+v", before, after)
			}
			change(t, silent, 2)
			if r := verify(t, cfg); r.OK != before.OK || r.Head.Seq < 2 {
				t.Errorf("later: %+v", r)
			}
		})
	}
}

func Test_15_4_AnUnknownAnchorIsRefused(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Anchor = "stone"
	if err := Open(cfg).Append(Entry{Kind: Change}, true); err == nil || !strings.Contains(err.Error(), `"stone"`) {
		t.Errorf("%v", err)
	}
	if err := Look(cfg); err == nil {
		t.Error("the quick look sees nothing")
	}
}

// A name of the same directory by a link is the same audit.
func Test_15_4_AnAuditBehindALinkIsTheSame(t *testing.T) {
	k := listen(t)
	cfg := anchoredAt(t, AnchorJournald, k)
	linked := cfg
	linked.Dir = filepath.Join(t.TempDir(), "a b%\n\"/audit")
	real := filepath.Dir(cfg.Dir)
	if err := errors.Join(os.MkdirAll(real, 0o700), os.Symlink(real, filepath.Dir(linked.Dir))); err != nil {
		t.Fatal(err)
	}
	change(t, linked, 2)
	if r := against(t, cfg, strings.Join(k.take(t, 2), "\n")); !r.OK || r.Anchors.Heads != 2 {
		t.Errorf("%+v %+v", r, r.Anchors)
	}
	if got := string(appendPath(nil, "/a b%\n\"é")); got != "/a%20b%25%0A%22%C3%A9" {
		t.Errorf("%s", got)
	}
}

func FuzzAnchor(f *testing.F) {
	k := newKey("", make([]byte, 64))
	f.Add([]byte(anchorLine(Head{Seq: 1, Hash: zeroHash, Time: "t"}, "/a b", k)))
	f.Add([]byte(`{"seq":1,"hash":"` + zeroHash + `","sig":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, ours, ok := parseAnchor(text, k)
		if (ok || p.proven) && !ours {
			t.Error("a head in a line that has none")
		}
		if ok && p.proven && !bytes.Contains(text, []byte("hash="+p.Hash)) {
			t.Errorf("%q is read as %+v", text, p)
		}
		a := &Anchors{}
		a.take(text, 1, k, "/a")
		for _, h := range a.heads {
			if h.seq == 0 {
				t.Errorf("%q names no entry", text)
			}
		}
	})
}
