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
	for _, line := range []string{"mcp", "mcp --http", "--home x mcp --pack a", "import openapi ./a.json", "demo", "mcp --help"} {
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

// §2.2, §11: a word that is kept for hcpx itself is never said to be a pack that is not installed, and hcpxd says the same.
func Test_2_2_AWordThatIsKeptIsNoMissingPack(t *testing.T) {
	for line, want := range map[string]struct {
		exit int
		said string
	}{
		"serve --listen :1": {70, "hcpx serve is hcpx's own and not built yet, neither here nor in hcpxd."}, "sense run": {70, "not built yet"},
		"push a b": {70, "not built yet"}, "pull oci://x": {70, "not built yet"}, "serve --help": {70, "not built yet"}, "help serve": {70, "not built yet"},
		"init": {64, "hcpx init is hcpx's own and not built yet; no pack has that name."}, "dev x": {64, "not built yet"}, "search a": {64, "not built yet"},
		"check ./x": {64, "not built yet"}, "pack": {64, "not built yet"}, "login": {64, "login is a word that hcpx keeps for itself"}, "hcpxd": {64, "keeps for itself"},
	} {
		for _, beside := range []*Daemon{nil, {}} {
			env, out, errs := terminalFree(t, strings.Fields(line)...)
			env.Daemon = beside
			env.Become = func(string, []string) error { t.Errorf("%s: handed over", line); return os.ErrNotExist }
			code := Main(context.Background(), env)
			if got := out.String() + errs.String(); code != want.exit || !strings.Contains(got, want.said) || strings.Contains(got, "no pack of that name is installed") {
				t.Errorf("%s: exit %d\n%s", line, code, got)
			}
		}
	}
}

// §12.2: a pack that is named and not installed is said on stderr, since stdout is the protocol's.
func Test_12_2_APackThatIsNotThereIsSaid(t *testing.T) {
	env, out, errs := terminalFree(t, "mcp", "--pack", "nope", "--pack", "hcp-cli")
	served := false
	env.Daemon = &Daemon{MCP: func(_ context.Context, m MCP) error {
		served = slices.Equal(m.Packs, []string{"nope", "hcp-cli"})
		return nil
	}}
	if code := Main(context.Background(), env); code != 0 || !served || out.Len() > 0 || !strings.Contains(errs.String(), `no pack "nope" is installed`) {
		t.Errorf("exit %d, served %v\n%s%s", code, served, out, errs)
	}
}
