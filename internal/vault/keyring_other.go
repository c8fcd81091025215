//go:build darwin || windows

package vault

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/zalando/go-keyring"

	"hcpx/internal/protocol"
)

// The keyring of a system that always has one. It bounds what it keeps: about 2.5 KB.
type system struct{}

func newRing(Options) ring { return system{} }

func reachHint() string { return "hcpx doctor" }

func (system) reach(context.Context) (session, string, *protocol.Error) { return system{}, "", nil }

func (system) close() {}

func (system) ready() (string, *protocol.Error) { return "", nil }

// service names the items of one store.
func service(store string) string { return "hcpx " + store }

func (system) get(s slot) ([]byte, bool, *protocol.Error) {
	coded, err := keyring.Get(service(s.store), s.name)
	if errors.Is(err, keyring.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, refusedBySystem()
	}
	value, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return nil, false, fail("The item of this secret in the keyring of the OS is not what was put there.").WithHint("hcpx doctor")
	}
	return value, true, nil
}

func (system) set(s slot, value []byte) (bool, *protocol.Error) {
	err := keyring.Set(service(s.store), s.name, base64.StdEncoding.EncodeToString(value))
	switch {
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return true, fail("The secret is larger than the keyring of the OS takes; nothing was changed.").WithHint("hcpx doctor")
	case err != nil:
		return false, refusedBySystem()
	}
	return false, nil
}

func (system) remove(s slot) *protocol.Error {
	if err := keyring.Delete(service(s.store), s.name); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return refusedBySystem()
	}
	return nil
}

// refusedBySystem leaves the system's own text out: it may quote what it was given.
func refusedBySystem() *protocol.Error {
	return fail("The keyring of the OS is locked or refused, and no other place is tried. Unlock it, and try again.").WithHint("hcpx doctor")
}
