package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lines is an output that is read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// §15.2: watch prints each request once, as it comes, and a signal ends it well.
func Test_15_2_WatchPrintsNewOnesUntilASignal(t *testing.T) {
	h := home{t, t.TempDir()}
	for name, text := range map[string]string{
		"flag/surface.json": `{"hcp":{"version":"1.1"},"id":"flag","version":"1.0.0","summary":"Set a flag.","adapter":"composite","verbs":{"set":{"summary":"Set it.",
			"args":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]},"steps":[{"id":"a","value":".args.to"}],"output":".steps.a","examples":[{"args":{"to":"x"}}]}}}`,
		"flag/policy.json":  `{"surface_id":"flag","verbs":{"set":{"operation":"write","privacy":{"land":"personal"},"confirm":{"message":"Set it to {to}?"}}}}`,
		"flag/HARNESS.md":   "# Flag\n\nSets a flag.\n\n`hcpx exec flag set`\n",
		"store/config.toml": "[identity]\nagents = \"trust-flags\"\n",
	} {
		path := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"install flag", "activate flag", "grant agent:claude-code verb.exec.write"} {
		if out, err := h.command(strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", args, err, out)
		}
	}
	ask := func(to string) {
		if out, err := h.command("exec", "flag", "set", "--as", "agent:claude-code", "--json", "--", "to="+to).Output(); err == nil || !strings.Contains(string(out), "approval_id") {
			t.Fatalf("%v %s", err, out)
		}
	}
	for i, sig := range heard() {
		word := []string{"one", "two", "three", "four"}[i]
		ask(word)
		c := h.command("approvals", "watch", "--json")
		var out, errs lines
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all := func() string { return out.String() + errs.String() }
		await(t, func() bool { return strings.Contains(out.String(), `"Set it to `+word+`?"`) }, all)
		ask(word + " more")
		ask(word + " more")
		await(t, func() bool { return strings.Contains(out.String(), `"Set it to `+word+` more?"`) }, all)
		if err := c.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil || errs.String() != "" {
			t.Errorf("%v: %v %s", sig, err, errs.String())
		}
		if n := strings.Count(out.String(), word+" more?"); n != 1 || strings.Count(out.String(), "\n") != 2*(i+1) {
			t.Errorf("%v: a request was printed %d times:\n%s", sig, n, out.String())
		}
	}
}
