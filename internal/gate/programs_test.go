package gate

import (
	"os"
	"path/filepath"
	"testing"

	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

func Test_10_2_MoreInterpreters(t *testing.T) {
	for _, name := range []string{
		"sh", "rbash", "/usr/bin/python3.12", "perl5.36-x86_64-linux-gnu", "perl5.36.0", "python3.11-x86_64-linux-gnu", "/usr/bin/vim.basic", "bash-static",
		"/lib64/ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-musl-x86_64.so.1", "ld-2.31.so", "ld.so", "m4", "ed", "vi", "less", "man", "sed", "x86_64", "linux32",
		"stdbuf", "ionice", "chrt", "taskset", "flock", "setarch", "runuser", "systemd-run", "run-parts", "bwrap", "socat", "node22", "lua5.4",
	} {
		if !Interpreter(name) {
			t.Errorf("%s is no interpreter", name)
		}
	}
	for _, name := range []string{"git", "tar", "jq", "rg", "psql", "ls", "ld", "x86_64-linux-gnu-objdump", "m", "i", "sort", "nicer", "env2json", "tool"} {
		if Interpreter(name) {
			t.Errorf("%s is an interpreter", name)
		}
	}
}

func Test_10_2_APrivateGroupIsNobodyElse(t *testing.T) {
	const users = "root:x:0:0:::\nada:x:1000:1000:Ada:/home/ada:/bin/bash\nbo:x:1001:1001:::\n"
	for _, c := range []struct {
		name, groups, users string
		want                bool
	}{
		{"nobody in it", "root:x:0:\nada:x:1000:\n", users, true},
		{"only its user", "ada:x:1000:ada\n", users, true},
		{"another member", "ada:x:1000:ada,bo\n", users, false},
		{"someone else alone", "ada:x:1000:bo\n", users, false},
		{"the first group of another", "ada:x:1000:\n", users + "eve:x:1002:1000:::\n", false},
		{"not in the file", "root:x:0:\n", users, false},
		{"twice", "ada:x:1000:\nboth:x:1000:bo\n", users, false},
		{"a user that no file knows", "ada:x:1000:\n", "root:x:0:0:::\n", false},
		{"damaged", "ada:x:1000\n", users, false},
	} {
		if got := privateGroup(1000, 1000, c.groups, c.users); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func Test_10_2_ADirectoryOfProgramsStaysTheOneThatWasAllowed(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, other := filepath.Join(base, "core"), filepath.Join(base, "other")
	for _, d := range []string{dir, other} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	st := &store.State{Bins: []protocol.AllowedBin{{Name: dir + "/", Path: dir}}}
	if _, err := Allowed(st, dir+"/", false); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Allowed(st, dir+"/", false); err == nil || err.Code != protocol.BinNotAllowed {
		t.Errorf("a link in its place: %v", err)
	}
}
