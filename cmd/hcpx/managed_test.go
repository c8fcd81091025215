package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// §9.3: the place of the managed settings is of the build, so that no flag and no variable leads around them.
func Test_9_3_ABuildNamesItsManagedSettings(t *testing.T) {
	dir := t.TempDir()
	program, file := filepath.Join(dir, "hcpx"), filepath.Join(dir, "managed.toml")
	build := exec.Command("go", "build", "-o", program, "-ldflags", "-s -w -X hcpx/internal/app.managedPath="+file, "hcpx/cmd/hcpx")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(file, []byte("confirm.agent = \"approval\"\nstore.home = \""+dir+"/pinned\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	show := exec.Command(program, "config", "show")
	show.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	show.Dir = dir
	out, err := show.CombinedOutput()
	if err != nil || !strings.Contains(string(out), dir+"/pinned") || !strings.Contains(string(out), "managed.toml") {
		t.Errorf("%v\n%s", err, out)
	}
}
