package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/gate"
)

// shims puts a directory in front of PATH in which tool is a script that bash runs, through env.
func (w *world) shims() string {
	w.t.Helper()
	dir := w.t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	write(w.t, filepath.Join(dir, "tool"), "#!/usr/bin/env bash\nexec manager exec tool\n", 0o755)
	w.Path = dir + string(filepath.ListSeparator) + w.bin
	return filepath.Join(dir, "tool")
}

func Test_10_2_AScriptWhoseInterpreterIsNotAllowedIsNoted(t *testing.T) {
	w := newWorld(t)
	shim, real := w.shims(), filepath.Join(w.bin, "tool")
	view, err := w.Allow(ada, AllowRequest{Bins: []string{"tool"}})
	if err != nil || len(view.Notes) != 1 || !strings.Contains(view.Notes[0], shim) || !strings.HasSuffix(view.Notes[0], "hcpx allow "+real) {
		t.Errorf("allow: %q %v", view.Notes, err)
	}
	one := w.install(w.pack("notes"), InstallOptions{AllowBin: true})
	if !strings.Contains(one.Note, "hcpx allow "+real) {
		t.Errorf("install: %q", one.Note)
	}
	found := false
	for _, f := range w.Doctor(ada).Findings {
		found = found || f.Area == "program" && f.Subject == "tool" && f.Level == LevelWarning && f.Fix == "hcpx allow "+real
	}
	if !found {
		t.Error("doctor does not find it")
	}

	// The command that was named mends it: the pack's name means that file from now on.
	view, err = w.Allow(ada, AllowRequest{Bins: []string{real}})
	if err != nil || len(view.Bins) != 2 || !cmp.Equal(view.Notes, []string{"tool was " + shim + " until now."}) {
		t.Errorf("allow by path: %+v %v", view, err)
	}
	for _, name := range []string{"tool", real} {
		if b, err := gate.Allowed(w.mustState(), name, true); err != nil || b.Path != real {
			t.Errorf("%s is %v, %v", name, b, err)
		}
	}
	for _, f := range w.Doctor(ada).Findings {
		if f.Area == "program" && f.Level != LevelOK {
			t.Errorf("%+v", f)
		}
	}
	if view, err := w.Allow(ada, AllowRequest{Bins: []string{real}}); err != nil || view.Changed {
		t.Errorf("again: %+v %v", view, err)
	}
	if one := w.install(w.pack("notes", `"1.0.0"`, `"1.0.1"`), InstallOptions{AllowBin: true}); one.Note != "" {
		t.Errorf("install: %q", one.Note)
	}
}

// A pack that names a program never redirects the name for others.
func Test_10_2_APackThatNamesAPathAllowsThatPathAlone(t *testing.T) {
	w := newWorld(t)
	real := filepath.Join(w.bin, "helper")
	if one := w.install(w.pack("notes", `"uses": ["helper"]`, `"uses": ["`+real+`"]`), InstallOptions{AllowBin: true}); len(one.Allowed) != 2 {
		t.Fatalf("%+v", one)
	}
	if _, err := gate.Allowed(w.mustState(), "helper", false); err == nil {
		t.Error("the bare name was allowed too")
	}
}

// Where PATH has no other file, the note names what the script needs; with that allowed there is nothing to say.
func Test_10_2_AScriptAloneNeedsItsInterpreters(t *testing.T) {
	w := newWorld(t)
	write(t, filepath.Join(w.bin, "greet"), "#!"+filepath.Join(w.bin, "bash")+" -e\n", 0o755)
	view, err := w.Allow(ada, AllowRequest{Bins: []string{"greet"}})
	if err != nil || len(view.Notes) != 1 || !strings.HasSuffix(view.Notes[0], "hcpx allow "+filepath.Join(w.bin, "bash")) {
		t.Errorf("%q %v", view.Notes, err)
	}
	view, err = w.Allow(ada, AllowRequest{Bins: []string{"greet", "bash"}, Dangerous: true})
	if err != nil || len(view.Notes) != 0 {
		t.Errorf("%q %v", view.Notes, err)
	}
}

// A pack that ships has uses that nobody edits: the hint is the program behind its script, the newest of those that the
// system keeps by version, and never to add the pack again.
func Test_10_2_TheScriptOfAShippedPackIsMendedByAllow(t *testing.T) {
	w := newWorld(t)
	write(t, filepath.Join(w.bin, "tool"), "#!"+filepath.Join(w.bin, "bash")+"\nexec manager tool\n", 0o755)
	w.Shipped = os.DirFS(filepath.Dir(w.pack("notes")))
	view, err := w.Add(ada, "notes", AddOptions{Yes: true})
	if err != nil || !strings.Contains(view.Pack.Note, "hcpx allow /PATH/TO/tool") || strings.Contains(view.Pack.Note, "hcpx add") {
		t.Errorf("add: %q %v", view.Pack.Note, err)
	}
	behind := t.TempDir()
	w.Versions = filepath.Join(behind, "*", "*", "bin")
	for _, version := range []string{"9.6", "16", "15", "old"} {
		write(t, filepath.Join(behind, "tools", version, "bin", "tool"), "\x7fELF", 0o755)
	}
	write(t, filepath.Join(behind, "tools", "17", "bin", "tool"), "#!"+filepath.Join(w.bin, "bash")+"\n", 0o755) // a script too
	want := "hcpx allow " + filepath.Join(behind, "tools", "16", "bin", "tool")
	found := false
	for _, f := range w.Doctor(ada).Findings {
		found = found || f.Area == "program" && f.Subject == "tool" && f.Fix == want
	}
	if !found {
		t.Errorf("doctor does not name %s: %+v", want, w.Doctor(ada).Findings)
	}
}
