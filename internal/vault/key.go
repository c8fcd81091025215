package vault

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"

	"hcpx/internal/protocol"
)

// keyName is the key file that is made on first need, in the runtime's configuration (§8.3).
const keyName = "vault.key"

const (
	maxKey = 64 << 10
	// workFactor is log2 of scrypt's cost of a new passphrase: a fraction of a second. maxWorkFactor bounds what a
	// file may ask for.
	workFactor    = 16
	maxWorkFactor = 20
)

// minPassphrase is the shortest passphrase that is taken for a new vault, as of every secret (§8.3).
const minPassphrase = 8

// key opens the vault and seals it.
type key struct {
	path  string
	usual bool // Config's key file
	ids   []age.Identity
	to    age.Recipient
}

// key is the one key of the vault: the file that was named, else the one under a passphrase where there is one, else
// that of the configuration. What does not open the vault is an error; no second one is tried.
func (v *vault) key(ctx context.Context) (*key, *protocol.Error) {
	if v.o.KeyFile != "" {
		return v.readKey(v.o.KeyFile)
	}
	if _, err := stat(v.path(ownKeyName)); !errors.Is(err, fs.ErrNotExist) {
		return v.unlockKey(ctx)
	}
	if v.o.Config == "" {
		return nil, fail("There is no directory of configuration for the vault's key, and HCP_VAULT_KEY_FILE names none.").
			WithHint("export HCP_VAULT_KEY_FILE=/path/of/the/key")
	}
	return v.readKey(filepath.Join(v.o.Config, keyName))
}

// keyOrNew makes the key on first need. A key is never made for a vault that is there.
func (v *vault) keyOrNew(ctx context.Context) (*key, *protocol.Error) {
	_, begun := stat(v.path(vaultName))
	if v.o.KeyFile != "" || !errors.Is(begun, fs.ErrNotExist) {
		return v.key(ctx)
	}
	_, own := stat(v.path(ownKeyName))
	switch {
	case !errors.Is(own, fs.ErrNotExist):
		return v.key(ctx)
	case v.o.ByPassphrase:
		return v.makeOwnKey(ctx)
	case v.o.Config == "":
		return v.key(ctx)
	}
	path := filepath.Join(v.o.Config, keyName)
	if _, err := stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := v.makeKey(ctx, path); err != nil {
			return nil, err
		}
	}
	return v.readKey(path)
}

// readKey reads a key file, which only its owner may read.
func (v *vault) readKey(path string) (*key, *protocol.Error) {
	what := "The key file " + path + " of the vault"
	text, err := readPrivate(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && path == v.o.KeyFile:
		return nil, fail(what + ", which HCP_VAULT_KEY_FILE names, does not exist.").WithHint("age-keygen -o " + protocol.Word(path))
	case errors.Is(err, fs.ErrNotExist):
		return nil, v.lost(what + " is missing")
	case errors.Is(err, errOpen):
		return nil, fail(what + " can be read by other users, so it is not used.").WithHint("chmod 600 " + protocol.Word(path))
	case err != nil:
		return nil, unreadable(what, err)
	}
	defer clear(text)
	k, err := parseKey(text)
	if err != nil {
		return nil, fail(what + " holds no age identity; it was left as it is.").WithHint("head -c 15 " + protocol.Word(path))
	}
	k.path, k.usual = path, path != v.o.KeyFile
	return k, nil
}

// parseKey takes a file of age identities: the first seals, each opens. Errors say nothing of the content.
func parseKey(text []byte) (*key, error) {
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	k := &key{ids: ids}
	switch id := ids[0].(type) {
	case *age.X25519Identity:
		k.to = id.Recipient()
	case *age.HybridIdentity:
		k.to = id.Recipient()
	default:
		return nil, errors.New("an identity of another kind")
	}
	return k, nil
}

// newKeyText is a new identity as age-keygen writes it.
func newKeyText() ([]byte, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	return []byte("# the key of the hcpx vault: whoever has it reads the secrets\n" + id.String() + "\n"), nil
}

// makeKey makes the configuration's key file, which several stores of a user may share. Of several processes one makes
// it, and everyone reads that.
func (v *vault) makeKey(ctx context.Context, path string) *protocol.Error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return unwritten(path, err)
	}
	unlock, failed := v.lock(ctx, path+".lock", patience)
	if failed != nil {
		return failed
	}
	defer unlock()
	if _, err := stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	text, err := newKeyText()
	defer clear(text)
	if err != nil {
		return unwritten(path, err)
	}
	return v.replace(path, text)
}

// unlockKey asks for the passphrase once in the life of the store.
func (v *vault) unlockKey(ctx context.Context) (*key, *protocol.Error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asked != nil {
		return v.asked, nil
	}
	path := v.path(ownKeyName)
	sealed, err := readWhole(path, maxKey)
	if err != nil {
		return nil, unreadable("The key "+path+" of the vault", err)
	}
	phrase, failed := v.ask(ctx, false)
	if failed != nil {
		return nil, failed
	}
	defer clear(phrase)
	id, err := age.NewScryptIdentity(string(phrase))
	if err != nil {
		return nil, fail("The passphrase of the vault is empty.").WithHint("hcpx status")
	}
	id.SetMaxWorkFactor(maxWorkFactor)
	text, err := unseal(sealed, []age.Identity{id})
	defer clear(text)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, fail("The passphrase does not open the vault; nothing was changed.").WithHint("hcpx status")
	}
	k, bad := parseKey(text)
	if err != nil || bad != nil {
		return nil, v.lost("The key " + path + " of the vault is damaged")
	}
	k.path, v.asked = path, k
	return k, nil
}

// makeOwnKey makes a key under a new passphrase, unless a vault was begun meanwhile.
func (v *vault) makeOwnKey(ctx context.Context) (*key, *protocol.Error) {
	phrase, failed := v.ask(ctx, true)
	if failed != nil {
		return nil, failed
	}
	defer clear(phrase)
	if len(phrase) < minPassphrase {
		return nil, fail("A passphrase of less than 8 bytes is not taken for a vault.").WithHint("hcpx status")
	}
	text, err := newKeyText()
	defer clear(text)
	if err != nil {
		return nil, unwritten(v.path(ownKeyName), err)
	}
	to, err := age.NewScryptRecipient(string(phrase))
	if err != nil {
		return nil, unwritten(v.path(ownKeyName), err)
	}
	to.SetWorkFactor(workFactor)
	sealed, err := seal(text, to)
	if err != nil {
		return nil, unwritten(v.path(ownKeyName), err)
	}
	k, err := parseKey(text)
	if err != nil {
		return nil, unwritten(v.path(ownKeyName), err)
	}
	failed = v.locked(ctx, func(*record) *protocol.Error {
		_, vault := stat(v.path(vaultName))
		_, own := stat(v.path(ownKeyName))
		if !errors.Is(vault, fs.ErrNotExist) || !errors.Is(own, fs.ErrNotExist) {
			return raced()
		}
		return v.replace(v.path(ownKeyName), sealed)
	})
	if failed != nil {
		return nil, failed
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	k.path, v.asked = v.path(ownKeyName), k
	return k, nil
}

func (v *vault) ask(ctx context.Context, fresh bool) ([]byte, *protocol.Error) {
	if v.o.Passphrase == nil {
		return nil, fail("The vault is kept by a passphrase, and there is nobody to ask for it here. Run it at a terminal.").WithHint("hcpx status")
	}
	return v.o.Passphrase(ctx, fresh)
}

// wrongKey: the vault is whole, as far as can be told, and was sealed with another key.
func (v *vault) wrongKey(k *key) *protocol.Error {
	e := fail("The key " + k.path + " does not open the vault " + v.path(vaultName) + ", which was made with another; nothing was changed and no other key is tried.")
	if !k.usual && k.path == v.o.KeyFile {
		return e.WithHint("unset HCP_VAULT_KEY_FILE")
	}
	return e.WithHint("export HCP_VAULT_KEY_FILE=/path/of/the/key")
}
