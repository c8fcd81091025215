package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/audit"
)

// §12.1: a face is a link to this program and a person's act; what is none of our links is neither replaced nor removed.
func Test_12_1_FaceInstall(t *testing.T) {
	p := facePlace(t)
	local, other, self := filepath.Join(p.dir, "home", ".local", "bin"), filepath.Join(p.dir, "other"), filepath.Join(p.dir, "bin", "hcpx")
	p.write("bin/hcpx", "the program")
	p.write("other/mirror", "#!/bin/sh\n")
	p.write("hold/kinds", "a file of the user")
	if err := os.Chmod(filepath.Join(other, "mirror"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(want int, path, line string) string {
		t.Helper()
		env, out, errs := p.env(strings.Fields(line)...)
		getenv := env.Getenv
		env.Self = func() (string, error) { return self, nil }
		env.Getenv = func(name string) string {
			if name == "PATH" {
				return path
			}
			return getenv(name)
		}
		if code := Main(context.Background(), env); code != want {
			t.Fatalf("%s: exit %d, want %d\n%s%s", line, code, want, out, errs)
		}
		return out.String() + errs.String()
	}
	said := func(want int, path, line string, all ...string) {
		t.Helper()
		text := run(want, path, line)
		for _, s := range all {
			if !strings.Contains(text, s) {
				t.Errorf("%s: %q is not in\n%s", line, s, text)
			}
		}
	}
	on := local + "/:" + other
	before := len(p.audit())
	said(64, other, "face install kinds", "--dir DIR")
	said(0, on, "face install kinds", "linked "+local+"/kinds to "+self, "next: kinds --help")
	if target, err := os.Readlink(filepath.Join(local, "kinds")); err != nil || target != self {
		t.Errorf("%q, %v", target, err)
	}
	said(0, on, "face install kinds", "there already")
	said(64, on, "face install mirror", "mirror is on PATH already: "+other+"/mirror", "hcpx face install mirror --force")
	said(0, on, "face install mirror --force", "linked", "other/mirror has that name too")
	said(64, on, "face install kinds --force --dir hold", "is no link of hcpx")
	said(0, on, "face install kinds --dir "+filepath.Join(p.dir, "away"), "away is not on PATH")
	said(3, on, "face install nowhere", "No pack")
	said(64, on, "face install ../kinds", "cannot be the id")
	said(64, on, "face install hcp-cli", "hcpx's own")
	said(3, on, "face install kinds --as agent:claude-code", "act of a person")
	said(3, on, "face remove kinds --as agent:claude-code", "act of a person")
	said(0, on, "face list", local+"/kinds", local+"/mirror")
	said(64, on, "face remove kinds --dir hold", "is no link of hcpx")
	said(64, on, "face remove ../bin/hcpx", "cannot be the id")
	said(0, on, "face remove mirror", "removed "+local+"/mirror")
	said(1, on, "face remove mirror", "No link of hcpx")
	p.run(0, "uninstall", "mirror")
	said(0, on, "face remove kinds", "removed "+local+"/kinds")
	said(0, on, "face remove kinds --dir away", "removed")
	for _, kept := range []string{"other/mirror", "hold/kinds", "bin/hcpx"} {
		if _, err := os.Stat(filepath.Join(p.dir, kept)); err != nil {
			t.Error(err)
		}
	}
	// a link that leads nowhere any more is made again, another program's is not
	if err := os.Symlink(filepath.Join(p.dir, "gone", "hcpx"), filepath.Join(local, "kinds")); err != nil {
		t.Fatal(err)
	}
	said(0, on, "face list --json", `"notes":["It leads nowhere any more`)
	said(0, on, "face install kinds", "linked")
	if err := os.Symlink("/bin/sh", filepath.Join(other, "kinds")); err != nil {
		t.Fatal(err)
	}
	said(64, on, "face install kinds --dir other --force", "is no link of hcpx")
	acts := map[string]int{}
	for _, e := range p.audit()[before:] {
		if e.Kind == audit.Change && strings.HasPrefix(e.Act, "face.") {
			acts[e.Act]++
		}
		if e.Kind == audit.Denial {
			acts[e.Code]++
		}
	}
	if acts["face.install"] != 4 || acts["face.remove"] != 3 || acts["operator_required"] != 2 {
		t.Errorf("recorded: %v", acts)
	}
}
