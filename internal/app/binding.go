package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"hcpx/internal/binding"
	"hcpx/internal/gate"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/vault"
)

// newHub gives the hub its doors (§8); each is opened when a source needs it.
func (a *App) newHub(g *gate.Gate) binding.Hub {
	return binding.NewHub(binding.Options{
		Secrets: a.vault(), Getenv: a.o.Getenv, ReadFile: a.readSource, Conceal: vault.Conceal, Now: a.o.Now,
		Net: binding.Net{Dial: binding.Dial},
		Command: func(ctx context.Context, argv []string) ([]byte, *protocol.Error) {
			return g.Credential(ctx, argv, a.sourceEnv())
		},
	})
}

// newVault is where secrets lie (§8.3): its record, locks and encrypted file in the store, its key outside of it.
func (a *App) newVault() vault.Store {
	return vault.Open(vault.Options{
		Dir: filepath.Join(a.home, "secrets"), Config: a.places.Own(), KeyFile: a.places.Key,
		Bus: a.o.Getenv("DBUS_SESSION_BUS_ADDRESS"), Runtime: a.o.Getenv("XDG_RUNTIME_DIR"),
		Passphrase: a.o.Passphrase, ByPassphrase: a.settings.VaultKey == "passphrase",
	})
}

// sourceEnv is all that a program which gives a credential is told of this user: where his files and his keyring are.
// Variables that hold a token themselves are not among them, so that no other credential is given in its place (§8.4).
func (a *App) sourceEnv() []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	if a.o.UserHome != "" {
		env = append(env, "HOME="+a.o.UserHome)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if value := a.o.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// maxSource bounds a file that a credential is read from.
const maxSource = 1 << 20

// readSource reads the file of a source, where its links lead; never one of the runtime's own.
func (a *App) readSource(path string) ([]byte, error) {
	real := places.Resolve(a.places.Target(path))
	if what := a.places.Runtime(real); what != "" {
		return nil, fmt.Errorf("it lies in %s", what)
	}
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a fifo keeps nobody waiting
	if err != nil {
		var fault *os.PathError
		if errors.As(err, &fault) {
			err = fault.Err
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err == nil && len(text) > maxSource {
		err = errors.New("it is larger than 1 MiB")
	}
	return text, err
}
