package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sums is a composite that computes only, and one that calls it.
var sums = map[string]string{
	"sums/surface.json": `{"hcp":{"version":"1.1"},"id":"sums","version":"1.0.0","summary":"Sum numbers.","adapter":"composite","verbs":{
		"add":{"summary":"Add them.","args":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"result":{"type":"integer"},
		"steps":[{"id":"sum","value":"[range(.args.n + 1)] | add"}],"output":".steps.sum","examples":[{"args":{"n":1}}]},
		"twice":{"summary":"Add them twice.","args":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},
		"steps":[{"id":"a","verb":"add","args":"{n: .args.n}"},{"id":"b","verb":"add","args":"{n: .steps.a}","when":".steps.a > 0"}],"examples":[{"args":{"n":1}}]},
		"boom":{"summary":"Take all memory.","steps":[{"id":"sum","value":"1"},{"id":"all","value":"[range(1e9)]"}],"examples":[{"args":{}}]}}}`,
	"sums/policy.json": `{"surface_id":"sums","verbs":{"add":{"operation":"read","privacy":{"land":"personal"}},"twice":{"operation":"read","privacy":{"land":"personal"}},
		"boom":{"operation":"read","privacy":{"land":"personal"}}}}`,
	"sums/HARNESS.md":   "# Sums\n\nSums numbers.\n\n`hcpx exec sums add`, `hcpx exec sums twice` and `hcpx exec sums boom`\n",
	"store/config.toml": "[identity]\nagents = \"trust-flags\"\n",
}

// §3.5, §11: the two programs as they are shipped. The core has expressions evaluated by the hcpxd beside it; without
// that one it refuses to lint and to run what has some, before anything is done, and does everything else.
func Test_3_5_TheTwoProgramsTogether(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("go is missing")
	}
	h := home{t, t.TempDir()}
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", h.dir+string(os.PathSeparator), "hcpx/cmd/hcpx", "hcpx/cmd/hcpxd")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.write(sums)
	run := func(want int, args ...string) string {
		t.Helper()
		c := h.command(args...)
		c.Path, c.Args[0] = filepath.Join(h.dir, "hcpx"), "hcpx"
		out, _ := c.CombinedOutput()
		if got := c.ProcessState.ExitCode(); got != want {
			t.Errorf("%q: exit %d\n%s", args, got, out)
		}
		return string(out)
	}
	has := func(out string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
	}
	missing := func(want int, args ...string) {
		t.Helper()
		has(run(want, args...), "component_missing", "hcpxd", "of the same release")
	}
	hidden := filepath.Join(h.dir, "away")
	away := func() { h.rename("hcpxd", hidden) }
	back := func() { h.rename(hidden, "hcpxd") }

	away()
	missing(70, "lint", "sums", "--json")
	missing(70, "install", "sums", "--json")
	has(run(0, "list", "--json"), `"packs"`)
	if strings.Contains(run(0, "list", "--json"), `"sums"`) {
		t.Error("something was installed")
	}
	back()
	run(0, "lint", "sums")
	run(0, "install", "sums")
	run(0, "activate", "sums")
	has(run(0, "exec", "sums", "twice", "--json", "--", "n=3"), `{"a":6,"b":21}`)
	has(run(1, "exec", "sums", "boom", "--json"), "step_failed", `"completed":["sum"]`, "The expression of value failed")
	away()
	missing(3, "exec", "sums", "add", "--json", "--", "n=1")
	has(run(0, "availability", "sums", "--json"), `"not_executable"`)
	has(run(0, "status", "--json"), "sums")
	h.write(map[string]string{"hcpxd": "#!/bin/sh\nexit 0\n"})
	has(run(1, "exec", "sums", "add", "--json", "--", "n=1"), "step_failed", `"internal"`, "of the same release")
}

func (h home) write(files map[string]string) {
	h.t.Helper()
	for name, text := range files {
		path := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h home) rename(from, to string) {
	h.t.Helper()
	at := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(h.dir, p)
	}
	if err := os.Rename(at(from), at(to)); err != nil {
		h.t.Fatal(err)
	}
}
