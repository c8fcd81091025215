package cli

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hcpx/internal/protocol"
)

// §9.3: what a script says with a variable that is not set never says less than was meant.
func Test_9_3_AnEmptyValueIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--session", ""}, {"--project="}, {"--workspace", ""}, {"--home", ""}, {"--color", ""},
	} {
		emptyRefused(t, append(args, "list", "--json"), protocol.UsageError, 64)
	}
	for _, args := range [][]string{
		{"exec", "--idempotency-key", "", "echo", "say"}, {"exec", "--approval=", "echo", "say"}, {"exec", "--envelope", "", "echo", "say"},
		{"grant", "agent:a", "verb.exec.write", "--pack", ""}, {"grant", "agent:a", "verb.exec.write", "--pack", "x", "--verb="},
		{"revoke", "agent:a", "--project", ""}, {"grant", "agent:a", "verb.exec.read", "--expires", ""}, {"allow", "--native", ""},
	} {
		emptyRefused(t, append(args, "--json"), protocol.UsageError, 64)
	}
	for _, args := range [][]string{{"grant", "agent:a", "verb.exec.write"}, {"activate", "echo"}} {
		emptyRefused(t, append(args, "--json", "--as", ""), protocol.Unauthenticated, 3)
	}
}

func emptyRefused(t *testing.T, args []string, code protocol.Code, exit int) {
	t.Helper()
	env, out, _ := terminalFree(t, args...)
	if got := Main(context.Background(), env); got != exit || !strings.Contains(out.String(), `"code":"`+string(code)+`"`) || !strings.Contains(out.String(), "empty") {
		t.Errorf("%q: exit %d, %s", args, got, out)
	}
}

// §9.3: the same holds for the environment; a flag stands above it.
func Test_9_3_AnEmptyVariableIsRefused(t *testing.T) {
	for name, want := range map[string]struct {
		flag, value string
		exit        int
	}{
		"HCP_PRINCIPAL": {"--as", "human:ada", 3}, "HCP_SESSION": {"--session", "s", 64}, "HCP_PROJECT": {"--project", "p", 64},
		"HCP_WORKSPACE": {"--workspace", ".", 64}, "HCP_HOME": {"--home", "store", 64},
	} {
		run := func(args ...string) (int, string) {
			env, out, _ := terminalFree(t, args...)
			values := map[string]string{"HCP_HOME": env.Dir + "/store", "HCP_PRINCIPAL": "human:ada"}
			values[name] = ""
			env.Getenv = func(n string) string { return values[n] }
			env.Lookup = func(n string) (string, bool) { v, set := values[n]; return v, set }
			return Main(context.Background(), env), out.String()
		}
		if exit, out := run("activate", "echo", "--json"); exit != want.exit || !strings.Contains(out, name) {
			t.Errorf("%s: exit %d, %s", name, exit, out)
		}
		if exit, out := run("list", "--json", want.flag, want.value); exit != 0 {
			t.Errorf("%s with %s: exit %d, %s", name, want.flag, exit, out)
		}
	}
}

// §11: a source that is no file is refused and not waited for.
func Test_11_AFifoIsNoSource(t *testing.T) {
	env, out, _ := terminalFree(t, "install", "x.tgz", "--json")
	name := filepath.Join(env.Dir, "x.tgz")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	env.Args[1] = name
	if exit := Main(context.Background(), env); exit != 1 || !strings.Contains(out.String(), "neither a directory nor a file") {
		t.Errorf("exit %d, %s", exit, out)
	}
}

// §15.5: keys that are no text would be one key once they are written as text, so they are none.
func Test_15_5_AKeyIsText(t *testing.T) {
	env, out, _ := terminalFree(t, "exec", "--idempotency-key", "\xff", "--json", "echo", "say")
	if got := Main(context.Background(), env); got != 64 || !strings.Contains(out.String(), "UTF-8") {
		t.Errorf("exit %d, %s", got, out)
	}
}

// §15.4: heads to compare with may come from something without an end.
func Test_15_4_HeadsHaveABound(t *testing.T) {
	endless := &bounded{endlessly{}, 1 << 20}
	if n, err := io.Copy(io.Discard, endless); err == nil || n != 1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type endlessly struct{}

func (endlessly) Read(p []byte) (int, error) { return len(p), nil }
