// Package vault keeps the secrets of bindings at rest (§8.3): in the OS keyring, and where there is none in
// one file that is encrypted with age. Nothing else of the runtime writes a secret to a disk.
//
// A secret is looked for where it was put. The record beside the vault says for each name which place that is,
// before anything is put there; a name is never in two places. So a keyring that is locked, or not there in this
// login, is an error with its own sentence, never a reason to look or to write elsewhere.
//
// Nouns: Store (the contract; vaulttest is its suite), Options (all that is known of this user and machine: the
// room reads no environment). Conceal keeps this process from being dumped (§8.4). Whose secret a name means is
// joined by the caller; what a secret is good for is asked in binding.
package vault

import (
	"context"

	"hcpx/internal/protocol"
)

// The places of a secret.
const (
	Keyring = "keyring" // of the OS
	File    = "vault"   // the encrypted file in the store
)

// MaxValue and MaxName bound one secret and its name, in bytes.
const (
	MaxValue = 64 << 10
	MaxName  = 512
)

// Store keeps secrets by name. A name is opaque, UTF-8 without control characters; names that differ in one byte
// are two. It may be used by several goroutines and processes at once. The context bounds every wait: for
// another process, for the keyring, for a person. All errors are binding_failed with a hint, except canceled and
// internal; none holds a byte of a value. A failed call changed nothing, or what was asked; it loses no other name.
type Store interface {
	// Get gives a copy of the value, which the caller clears after use; found is false when nothing of that
	// name was ever put anywhere, or it was deleted.
	Get(ctx context.Context, name string) (value []byte, found bool, err *protocol.Error)
	// Set puts or replaces. A name keeps its place until it is deleted; a new one goes to Kind.
	Set(ctx context.Context, name string, value []byte) *protocol.Error
	// Delete is durable when it returns; a name that is not there is no error.
	Delete(ctx context.Context, name string) *protocol.Error
	// Forget drops the record of a name without reaching its place, for a keyring that is gone for good. What may
	// be left there is what it answers, "" for nothing. For a name in the vault it is Delete.
	Forget(ctx context.Context, name string) (left string, err *protocol.Error)
	// Lock is the single flight of a name, across goroutines and processes; it is free when its holder dies. It
	// is not needed for the calls above, and they may be made while it is held. unlock may be called twice.
	Lock(ctx context.Context, name string) (unlock func(), err *protocol.Error)
	// Kind is the place of a name that would be set now; Where is that of a name that was, "" when none was.
	Kind(ctx context.Context) string
	Where(ctx context.Context, name string) (kind string, err *protocol.Error)
	// Check says why a secret that is kept here could not be had now; nil when all can. For doctor.
	Check(ctx context.Context) *protocol.Error
}

// Options are what the store is told. Nothing is read, made or connected before it is needed.
type Options struct {
	Dir     string // for record, vault and locks: a directory below HCP_HOME, made 0700 on first need
	Config  string // the runtime's configuration (places.Own), where vault.key is made on first need
	KeyFile string // HCP_VAULT_KEY_FILE: a file with an age identity, "" = Config's vault.key
	Bus     string // DBUS_SESSION_BUS_ADDRESS, "" = the bus of Runtime; Linux only
	Runtime string // XDG_RUNTIME_DIR, in which the bus of a login lies; "" = no Secret Service without Bus
	// Passphrase asks for the passphrase of the vault, twice when it is fresh; the store clears it. nil = nobody to
	// ask. A vault that was made with one always needs it.
	Passphrase func(ctx context.Context, fresh bool) ([]byte, *protocol.Error)
	// ByPassphrase has a vault that is made now kept by a passphrase, not by a key file.
	ByPassphrase bool
}
