package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

// §11: what hcpxd does is handed to the one beside this program, with the same argv; where there is none that is
// component_missing, exit 70, and says what to do.
func Test_11_WhatTheDaemonDoesIsHandedOver(t *testing.T) {
	for _, line := range []string{"mcp", "mcp --http", "--home x serve --listen :1", "sense run --json", "push a b", "pull oci://x", "import openapi ./a.json", "demo", "mcp --help"} {
		args := strings.Fields(line)
		var program string
		var argv []string
		env, out, errs := terminalFree(t, args...)
		env.Self = func() (string, error) { return "/opt/hcp/bin/hcpx", nil }
		env.Become = func(p string, a []string) error { program, argv = p, a; return os.ErrNotExist }
		code := Main(context.Background(), env)
		if program != "/opt/hcp/bin/hcpxd" || !slices.Equal(argv, append([]string{program}, args...)) {
			t.Errorf("%s: became %s %q", line, program, argv)
		}
		if code != 70 || !strings.Contains(out.String()+errs.String(), "/opt/hcp/bin") {
			t.Errorf("%s: exit %d\n%s%s", line, code, out, errs)
		}
	}
	for name, change := range map[string]func(*Env){
		"in process":       func(*Env) {},
		"of unknown place": func(e *Env) { e.Self, e.Become = func() (string, error) { return "", errors.New("gone") }, become },
		"without a sibling": func(e *Env) {
			e.Self, e.Become = func() (string, error) { return filepath.Join(t.TempDir(), "hcpx"), nil }, become
		},
	} {
		env, out, errs := terminalFree(t, "mcp", "--json")
		change(&env)
		if code := Main(context.Background(), env); code != 70 || errs.Len() > 0 || !strings.Contains(out.String(), string(protocol.ComponentMissing)) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errs)
		}
	}
}
