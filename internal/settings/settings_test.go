package settings

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func Test_11_3_WithoutFilesTheDefaultsHold(t *testing.T) {
	s, err := Load(filepath.Join(t.TempDir(), "none"), ReadManaged(filepath.Join(t.TempDir(), "none.toml")))
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{Key: "store.home", From: "default"},
		{Key: "identity.agents", Value: "detect", From: "default", Note: "advice, no wall: a process of this user can hide from it"},
		{Key: "confirm.agent", Value: "ask", From: "default"},
		{Key: "limits.output", Value: "8388608", From: "default"}, {Key: "limits.wall_max", Value: "1h0m0s", From: "default"}, {Key: "limits.cpu", Value: "1h0m0s", From: "default"},
		{Key: "limits.files", Value: "1024", From: "default"}, {Key: "limits.file_size", Value: "1073741824", From: "default"},
		{Key: "limits.memory", Value: "8589934592", From: "default"}, {Key: "limits.processes", Value: "4096", From: "default"},
		{Key: "packs.max_files", Value: "4096", From: "default"}, {Key: "packs.max_bytes", Value: "67108864", From: "default"},
		{Key: "packs.sources", Value: "*", From: "default"}, {Key: "packs.allow", Value: "*", From: "default"},
		{Key: "sandbox.accept", Value: "", From: "default"},
		{Key: "sandbox.native_local", Value: "allow", From: "default"}, {Key: "sandbox.dangerous", Value: "allow", From: "default"},
		{Key: "audit.anchor", Value: "none", From: "default", Note: "with none, who owns the audit's files can put back an older copy of them all, unseen"},
		{Key: "vault.key", Value: "file", From: "default"},
		{Key: "mothership.endpoints", Value: "what a person connects", From: "default"},
	}
	if diff := cmp.Diff(want, s.Rows()); diff != "" {
		t.Error(diff)
	}
}

func Test_9_3_ManagedBeatsConfig(t *testing.T) {
	home := t.TempDir()
	managed := filepath.Join(t.TempDir(), "managed.toml")
	write(t, filepath.Join(home, "config.toml"), `
confirm.agent = "envelope" # by hand
limits = { output = "1MiB", files = 0x40 }
[identity]
agents = 'trust-flags'
[packs]
max_files = 1_000
`)
	write(t, managed, "[confirm]\nagent = \"ask\"\n[limits]\nwall_max = \"90s\"\n")
	s, err := Load(home, ReadManaged(managed))
	if err != nil {
		t.Fatal(err)
	}
	if s.Agents != "trust-flags" || s.ConfirmAgent != "ask" || s.PackFiles != 1000 || s.PackBytes != 64<<20 ||
		s.Limits != (Limits{Output: 1 << 20, WallMax: 90 * time.Second, CPU: time.Hour, Files: 64, FileSize: 1 << 30, Memory: 8 << 30, Processes: 4096}) {
		t.Errorf("settings: %+v", s)
	}
	from := map[string]string{}
	for _, r := range s.Rows() {
		from[r.Key] = r.From
	}
	want := map[string]string{"identity.agents": "config.toml", "confirm.agent": "managed.toml", "limits.output": "config.toml",
		"limits.wall_max": "managed.toml", "limits.cpu": "default", "limits.files": "config.toml", "limits.file_size": "default",
		"limits.memory": "default", "limits.processes": "default",
		"packs.max_files": "config.toml", "packs.max_bytes": "default", "sandbox.accept": "default",
		"store.home": "default", "packs.sources": "default", "packs.allow": "default", "sandbox.native_local": "default", "sandbox.dangerous": "default", "audit.anchor": "default", "vault.key": "default", "mothership.endpoints": "default"}
	if diff := cmp.Diff(want, from); diff != "" {
		t.Error(diff)
	}
}

// §10.5: the operator accepts what is listed, and managed settings take it back whole.
func Test_10_5_AcceptIsAClosedListThatCanBePinned(t *testing.T) {
	home, managed := t.TempDir(), filepath.Join(t.TempDir(), "managed.toml")
	write(t, filepath.Join(home, "config.toml"), "[sandbox]\naccept = [ # here\n  \"signals\",\n  \"metadata\", # and there\n]\n")
	s, err := Load(home, ReadManaged(managed))
	if err != nil || !cmp.Equal(s.Accept, []string{"signals", "metadata"}) {
		t.Fatalf("%v %v", s, err)
	}
	write(t, managed, "sandbox.accept = []\n")
	if s, err = Load(home, ReadManaged(managed)); err != nil || len(s.Accept) != 0 {
		t.Errorf("%v %v", s, err)
	}
	if rows := s.Rows(); !slices.Contains(rows, Row{Key: "sandbox.accept", From: "managed.toml"}) {
		t.Errorf("%+v", rows)
	}
}

func Test_11_3_WhatIsWrongHasItsPlace(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"no TOML", "[limits]\noutput = \n", ":2:10: this is not TOML"},
		{"cut off", "[limits", ":1:7: this is not TOML"},
		{"bad UTF-8", "a = \"\xff\"", ":1:6: the file is not UTF-8"},
		{"unknown key", "[confirm]\nagents = \"ask\"", ":2:1: confirm.agents is no setting|did you mean confirm.agent?"},
		{"unknown table", "\n[confrim]\nagent = \"ask\"", ":2:2: confrim is no setting|did you mean confirm?"},
		{"unknown everything", "frobnicate = true", ":1:1: frobnicate is no setting"},
		{"array of tables", "[[limits]]\nfiles = 3", ":1:3: limits is a table of settings"},
		{"a table as a value", "limits = 3", ":1:1: limits is a table of settings"},
		{"bad word", "# ü\n[confirm]\n'agent' = \"maybe\"", ":3:11: confirm.agent is one of"},
		{"bad type", "[identity]\nagents = true", "identity.agents is one of"},
		{"zero", "[limits]\nfiles = 0", ":2:9: the value is a whole number"},
		{"negative", "[limits]\noutput = -1", ":2:10: limits.output is a number of bytes"},
		{"huge", "[limits]\noutput = 99999999999999999999", ":2:10: limits.output is a number of bytes"},
		{"a huge count", "[limits]\nfiles = 2147483648", ":2:9: the value is a whole number from 1 to 2147483647"},
		{"no number of bytes", "[limits]\nmemory = 1.5", ":2:10: limits.memory is a number of bytes"},
		{"§10.4: less than a second", "[limits]\ncpu = \"10ms\"", ":2:7: limits.cpu is a duration of whole seconds"},
		{"§10.4: a second and a half", "[limits]\ncpu = \"1500ms\"", ":2:7: limits.cpu is a duration of whole seconds"},
		{"bad size", "[limits]\noutput = \"8MB\"", ":2:10: limits.output is a number of bytes"},
		{"too long", "[limits]\nwall_max = \"2h\"", ":2:12: limits.wall_max is a duration up to an hour"},
		{"no list", "[sandbox]\naccept = \"signals\"", ":2:10: sandbox.accept is a list of some of [\"devices\", \"metadata\", \"proc\", \"programs\", \"signals\"]"},
		{"a word that cannot be accepted", "[sandbox]\naccept = [\"files\"]", "sandbox.accept is a list of some of"},
		{"a word twice", "[sandbox]\naccept = [\"signals\", \"signals\"]", "sandbox.accept is a list of some of"},
		{"a list of lists", "[sandbox]\naccept = [[\"signals\"]]", "sandbox.accept is a list of some of"},
		{"a list as a word", "[confirm]\nagent = [\"ask\"]", "confirm.agent is one of"},
		{"twice", "[limits]\nfiles = 3\nfiles = 4", ":3:1: limits.files stands here a second time"},
		{"twice in two ways", "limits.files = 3\n[limits]\nfiles = 4", ":3:1: limits.files stands here a second time"},
		{"table twice", "[limits]\n[limits]", ":2:2: [limits] stands here a second time"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, "config.toml")
			write(t, path, c.text)
			s, err := Load(home, ReadManaged(""))
			var e *Error
			if s != nil || !errors.As(err, &e) || len(e.Problems) != 1 {
				t.Fatalf("%+v, %v", s, err)
			}
			want, hint, _ := strings.Cut(c.want, "|")
			if !strings.HasPrefix(err.Error(), path+":") || !strings.Contains(err.Error(), want) || hint != e.Problems[0].Hint {
				t.Errorf("%s (%s), want %s", err, e.Problems[0].Hint, c.want)
			}
		})
	}
}

func Test_11_3_AllProblemsOfBothFilesAreListed(t *testing.T) {
	home := t.TempDir()
	managed := filepath.Join(home, "managed.toml")
	write(t, filepath.Join(home, "config.toml"), "one = 1\ntwo = 2\n")
	write(t, managed, "forbid = [\"native-local\"]\n")
	_, err := Load(home, ReadManaged(managed))
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 3 {
		t.Errorf("problems: %v", err)
	}
}

func Test_9_3_AFileThatOthersCanWriteIsRefused(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	write(t, path, "")
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(home, ReadManaged("")); err == nil {
		t.Error("it was read")
	}
	if _, err := Load(t.TempDir(), ReadManaged(t.TempDir())); err == nil {
		t.Error("a directory was read as managed settings")
	}
}

func FuzzApply(f *testing.F) {
	f.Add([]byte("[limits]\noutput = \"8MiB\"\n"))
	f.Add([]byte("limits = { files = 3, }\n[[x]]\n\"\" = 1"))
	f.Add([]byte("a.b.\"c\" = '''x\n'''"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s := Default()
		for _, p := range s.apply("config.toml", "config.toml", src) {
			if p.Line < 1 || p.Column < 1 || p.Message == "" {
				t.Errorf("problem without a place: %+v", p)
			}
		}
		if s.Limits.Output < 1 || s.Limits.WallMax < 1 || s.PackFiles < 1 || s.Agents == "" {
			t.Errorf("impossible settings: %+v", s)
		}
	})
}

func Test_9_3_WhatIsNoFileIsAProblemAndNeverWaitedFor(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.toml")
	for name, put := range map[string]func() error{
		"fifo":      func() error { return syscall.Mkfifo(path, 0o600) },
		"directory": func() error { return os.Mkdir(path, 0o700) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		var all *Error
		if _, err := Load(home, ReadManaged("")); !errors.As(err, &all) || all.Problems[0].File != path || !strings.Contains(all.Problems[0].Message, "regular file") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// §10.4: bytes are no fewer without a unit, and CPU time is in whole seconds.
func Test_10_4_LimitsAsTheyAreWritten(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "config.toml"), "[limits]\nmemory = 8589934592\nfile_size = \"3GiB\"\ncpu = \"1m30s\"\nwall_max = \"1500ms\"\n")
	s, err := Load(home, ReadManaged(""))
	if err != nil || s.Limits.Memory != 8<<30 || s.Limits.FileSize != 3<<30 || s.Limits.CPU != 90*time.Second || s.Limits.WallMax != 1500*time.Millisecond {
		t.Errorf("%+v %v", s, err)
	}
}
