package gate

import (
	"context"
	"fmt"
	"path"
	"time"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// Limits of a program that gives a credential (§8.3).
const (
	credentialTime   = 20 * time.Second
	credentialOutput = 64 << 10
)

// Credential runs the program of a source (§8.3) and gives what it printed. It is an allowed program with exact
// arguments and no shell, and its task is to read what every sandbox closes, so it runs with the user's rights, as
// native-local does: in an environment that is built from nothing but env, without input, with limits, and with nothing
// left alive behind it. Where the settings forbid native-local they forbid this too. Nothing that it prints is repeated.
func (g *Gate) Credential(ctx context.Context, argv, env []string) ([]byte, *protocol.Error) {
	st, fault := g.Store.State()
	if fault != nil {
		return nil, unmade("denied", "The allow-list cannot be read, so the program "+argv[0]+" that gives the credential was not run.").WithHint("hcpx doctor")
	}
	if g.Rules.NoNative {
		return nil, unmade("denied", "The settings forbid every program outside the sandbox, and with them "+argv[0]+", which gives the credential.").
			With("setting", "sandbox.native_local").WithHint("hcpx config show")
	}
	b, refusal := Allowed(g.InForce(st), argv[0], true)
	if refusal != nil {
		return nil, unmade("denied", "The credential comes from a program, and "+lower(refusal.Message)).WithHint(refusal.Hint)
	}
	spec := &sandbox.Spec{
		Program: sandbox.Program{Name: path.Base(argv[0]), Path: b.Path}, Args: argv[1:], Env: env, Native: true,
		Network: sandbox.Network{Mode: "full"}, Done: ctx.Done(),
		Limits: sandbox.Limits{Wall: credentialTime, Grace: 2 * time.Second, Output: credentialOutput},
	}
	box, refusal := g.Sandbox.Prepare(spec)
	if refusal != nil {
		return nil, unmade("denied", "The program "+argv[0]+" that gives the credential could not be prepared: "+refusal.Message).WithHint(refusal.Hint)
	}
	out, refusal := box.Run(ctx)
	if err := box.Close(); err != nil && refusal == nil {
		refusal = unmade("unkept", "The private directory of the program that gives the credential was not removed.").WithHint("hcpx doctor")
	}
	if refusal != nil {
		return nil, unmade("denied", "The program "+argv[0]+" that gives the credential did not run: "+refusal.Message).WithHint(refusal.Hint)
	}
	return printed(argv[0], out)
}

// printed judges how the program ended; what it said on the way may hold the credential and is not repeated.
func printed(name string, out *sandbox.Outcome) ([]byte, *protocol.Error) {
	switch {
	case out.Canceled:
		return nil, unmade("canceled", "The run was cancelled before "+name+" had given the credential.")
	case out.TimedOut:
		return nil, unmade("timeout", fmt.Sprintf("%s gave no credential within %s.", name, credentialTime))
	case out.Overflow:
		return nil, unmade("malformed", name+" printed more than any credential is.")
	case out.Exit != 0:
		return nil, unmade("denied", fmt.Sprintf("%s gave no credential: it ended with the exit code %d.", name, out.Exit)).With("exit_code", out.Exit)
	}
	return out.Stdout, nil
}

func unmade(reason, message string) *protocol.Error {
	return protocol.Fail(protocol.BindingFailed, message).With("reason", reason)
}

// lower makes a sentence the end of another one.
func lower(s string) string {
	if s == "" || s[0] < 'A' || s[0] > 'Z' {
		return s
	}
	return string(s[0]+'a'-'A') + s[1:]
}
