package vault

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"unicode"
	"unicode/utf8"

	"hcpx/internal/protocol"
)

// Open makes the store of a user's secrets. It touches nothing before it is asked.
func Open(o Options) Store { return &vault{o: o, ring: newRing(o)} }

type vault struct {
	o     Options
	ring  ring
	mu    sync.Mutex // over opened
	asked *key       // the key that a passphrase opened, so that a person is asked once
	fault func(point string) error
}

// ring is the keyring of the OS. reach answers nil and why when this login has none.
type ring interface {
	reach(ctx context.Context) (s session, none string, err *protocol.Error)
}

// session is one connection to a keyring, as long as the context that it was reached with.
type session interface {
	// ready says whether a new item can be put: none where no keyring was ever made, an error where it is locked.
	ready() (none string, err *protocol.Error)
	get(s slot) (value []byte, found bool, err *protocol.Error)
	// set is refused when the keyring said no, so that nothing was put; any other error may come after it was.
	set(s slot, value []byte) (refused bool, err *protocol.Error)
	remove(s slot) *protocol.Error
	close()
}

// slot is an item of the keyring. The id of the store keeps two stores of a user apart; a fresh one was never put.
type slot struct {
	store, name string
	fresh       bool
}

// Get: the record says where, and nothing else is asked.
func (v *vault) Get(ctx context.Context, name string) ([]byte, bool, *protocol.Error) {
	if err := Conceal(); err != nil {
		return nil, false, err
	}
	r, err := v.look(name)
	if err != nil {
		return nil, false, err
	}
	switch r.where(name) {
	case Keyring:
		s, err := v.keyring(ctx)
		if err != nil {
			return nil, false, err
		}
		defer s.close()
		return s.get(slot{store: r.id, name: name})
	case File:
		k, err := v.key(ctx)
		if err != nil {
			return nil, false, err
		}
		all, err := v.read(k)
		if err != nil {
			return nil, false, err
		}
		defer all.wipe()
		value, found := all.get(name)
		return value, found, nil
	}
	return nil, false, nil
}

// Set records a new name before it puts the value, so that no secret lies where nobody would look for it.
func (v *vault) Set(ctx context.Context, name string, value []byte) *protocol.Error {
	switch {
	case len(value) == 0:
		return fail("An empty secret is not kept.").WithHint("hcpx help connect")
	case len(value) > MaxValue:
		return fail("A secret of more than 64 KiB is not kept.").WithHint("hcpx help connect")
	}
	if err := Conceal(); err != nil {
		return err
	}
	r, err := v.look(name)
	if err != nil {
		return err
	}
	kind := r.where(name)
	if kind == "" {
		if kind, err = v.place(ctx); err != nil {
			return err
		}
		if kind == File {
			if err := v.asWanted(); err != nil {
				return err
			}
		}
	}
	if kind == Keyring {
		return v.setKeyring(ctx, name, value)
	}
	return v.setFile(ctx, name, value)
}

func (v *vault) setKeyring(ctx context.Context, name string, value []byte) *protocol.Error {
	s, err := v.keyring(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return v.locked(ctx, func(r *record) *protocol.Error {
		fresh := r.where(name) == ""
		switch {
		case r.where(name) == File:
			return raced()
		case fresh:
			if err := v.put(r, name, Keyring); err != nil {
				return err
			}
		}
		if err := v.point("keyring:set"); err != nil {
			return err
		}
		refused, err := s.set(slot{r.id, name, fresh}, value)
		if refused && fresh {
			if undo := v.drop(r, name); undo != nil {
				return undo
			}
		}
		if err != nil {
			return err
		}
		return v.point("keyring:done")
	})
}

func (v *vault) setFile(ctx context.Context, name string, value []byte) *protocol.Error {
	k, err := v.keyOrNew(ctx)
	if err != nil {
		return err
	}
	return v.locked(ctx, func(r *record) *protocol.Error {
		if r.where(name) == Keyring {
			return raced()
		}
		if err := v.begin(k, r); err != nil {
			return err
		}
		all, err := v.read(k)
		if err != nil {
			return err
		}
		defer all.wipe()
		if r.where(name) == "" {
			if err := v.put(r, name, File); err != nil {
				return err
			}
		}
		all.set(name, value)
		return v.write(k, all)
	})
}

// raced: another process put the name elsewhere between the look and the lock.
func raced() *protocol.Error {
	return fail("Another process changed this secret at the same moment; nothing was changed here.").WithHint("hcpx status")
}

// Delete removes the value first and its record after, so that none is forgotten where it lies.
func (v *vault) Delete(ctx context.Context, name string) *protocol.Error {
	r, err := v.look(name)
	if err != nil {
		return err
	}
	switch r.where(name) {
	case Keyring:
		s, err := v.keyring(ctx)
		if err != nil {
			return err
		}
		defer s.close()
		return v.locked(ctx, func(r *record) *protocol.Error {
			if r.where(name) != Keyring {
				return nil
			}
			if err := v.point("keyring:remove"); err != nil {
				return err
			}
			if err := s.remove(slot{store: r.id, name: name}); err != nil {
				return err
			}
			return v.drop(r, name)
		})
	case File:
		return v.deleteFile(ctx, name)
	}
	return nil
}

func (v *vault) deleteFile(ctx context.Context, name string) *protocol.Error {
	if err := Conceal(); err != nil {
		return err
	}
	k, err := v.key(ctx)
	if err != nil {
		return err
	}
	return v.locked(ctx, func(r *record) *protocol.Error {
		if r.where(name) != File {
			return nil
		}
		all, err := v.read(k)
		if err != nil {
			return err
		}
		defer all.wipe()
		if all.remove(name) {
			if err := v.write(k, all); err != nil {
				return err
			}
		}
		return v.drop(r, name)
	})
}

// Forget is for a keyring that will not come back.
func (v *vault) Forget(ctx context.Context, name string) (string, *protocol.Error) {
	r, err := v.look(name)
	if err != nil {
		return "", err
	}
	if r.where(name) != Keyring {
		return "", v.Delete(ctx, name)
	}
	left := ""
	err = v.locked(ctx, func(r *record) *protocol.Error {
		if r.where(name) != Keyring {
			return nil
		}
		left = Keyring
		return v.drop(r, name)
	})
	return left, err
}

// Where asks the record alone.
func (v *vault) Where(_ context.Context, name string) (string, *protocol.Error) {
	r, err := v.look(name)
	if err != nil {
		return "", err
	}
	return r.where(name), nil
}

// Kind is the keyring also where it is locked: it is there, and a new secret waits for it.
func (v *vault) Kind(ctx context.Context) string {
	if kind, err := v.place(ctx); err == nil {
		return kind
	}
	return Keyring
}

// place chooses for a new name (§8.3): the keyring, and the vault where there is none. A keyring that is locked or
// does not answer is an error.
func (v *vault) place(ctx context.Context) (string, *protocol.Error) {
	s, none, err := v.ring.reach(ctx)
	switch {
	case err != nil:
		return "", err
	case none != "":
		return File, nil
	}
	defer s.close()
	none, err = s.ready()
	switch {
	case err != nil:
		return "", err
	case none != "":
		return File, nil
	}
	return Keyring, nil
}

// keyring reaches the keyring for a name that is there; that there is none is an error.
func (v *vault) keyring(ctx context.Context) (session, *protocol.Error) {
	s, none, err := v.ring.reach(ctx)
	if none != "" {
		return nil, fail("The secret is in the keyring of the OS, which cannot be reached from here: " + none + ". No other place is tried.").
			WithHint(reachHint())
	}
	return s, err
}

// asWanted refuses a vault that lies under a key file where one under a passphrase is wanted: a vault keeps the key that it was
// made with, so whoever came to want the other would have it in the settings alone.
func (v *vault) asWanted() *protocol.Error {
	if !v.o.ByPassphrase || v.o.KeyFile != "" {
		return nil
	}
	_, made := stat(v.path(vaultName))
	_, own := stat(v.path(ownKeyName))
	if errors.Is(made, fs.ErrNotExist) || !errors.Is(own, fs.ErrNotExist) {
		return nil
	}
	return fail("The settings want the vault under a passphrase, and it was made with a key file, which stays its key. Move it away and connect again.").
		WithHint("mv " + protocol.Word(v.o.Dir) + " " + protocol.Word(v.o.Dir+".old"))
}

// Check opens what is kept, without showing any of it; nobody is asked for a passphrase.
func (v *vault) Check(ctx context.Context) *protocol.Error {
	if err := Conceal(); err != nil {
		return err
	}
	r, err := v.record()
	if err != nil {
		return err
	}
	for name, kind := range r.places {
		if kind == Keyring {
			value, _, err := v.Get(ctx, name)
			clear(value)
			if err != nil {
				return err
			}
			break
		}
	}
	if _, none := stat(v.path(vaultName)); errors.Is(none, fs.ErrNotExist) && !r.has(File) {
		return nil
	}
	if err := v.asWanted(); err != nil {
		return err
	}
	if _, err := stat(v.path(ownKeyName)); v.o.KeyFile == "" && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	k, err := v.key(ctx)
	if err != nil {
		return err
	}
	all, err := v.read(k)
	all.wipe()
	return err
}

// look reads the record for a name.
func (v *vault) look(name string) (*record, *protocol.Error) {
	if !goodName(name) {
		return nil, protocol.Fail(protocol.InternalError, "A secret was asked for by a name that cannot be one.")
	}
	return v.record()
}

// goodName: a name is one line of the record.
func goodName(name string) bool {
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) {
		return false
	}
	for _, c := range name {
		if unicode.IsControl(c) {
			return false
		}
	}
	return true
}

// point is where a test has a process die, or a disk fail.
func (v *vault) point(name string) *protocol.Error {
	if v.fault == nil {
		return nil
	}
	if err := v.fault(name); err != nil {
		return broken("A fault was asked for", err)
	}
	return nil
}

func fail(sentence string) *protocol.Error { return protocol.Fail(protocol.BindingFailed, sentence) }
