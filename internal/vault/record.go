package vault

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"hcpx/internal/protocol"
)

// The files of the store's directory.
const (
	recordName = "record"
	vaultName  = "vault.age"
	ownKeyName = "key.age" // the key, under a passphrase
	lockName   = "lock"
	lockDir    = "locks"
)

// recordHead begins the record; the id of the store follows, then one line "place name" for each name, sorted.
// Names say whose secret it is, as state.json does; no value stands here.
const recordHead = "hcpx-secrets 1 "

const (
	maxRecord = 8 << 20
	idLength  = 32
)

// record says where each secret is. It is read by everyone and replaced whole, under the lock.
type record struct {
	id     string // keeps the items of two stores apart in one keyring; "" before the first write
	places map[string]string
}

func (r *record) where(name string) string { return r.places[name] }

func (r *record) has(kind string) bool {
	for _, k := range r.places {
		if k == kind {
			return true
		}
	}
	return false
}

// decodeRecord takes just what encode gives.
func decodeRecord(src []byte) (*record, error) {
	bad := errors.New("it is not a record of secrets")
	text, whole := bytes.CutSuffix(src, []byte("\n"))
	lines := strings.Split(string(text), "\n")
	id, known := strings.CutPrefix(lines[0], recordHead)
	raw, err := hex.DecodeString(id)
	if !whole || !known || err != nil || len(raw)*2 != idLength || hex.EncodeToString(raw) != id {
		return nil, bad
	}
	r := &record{id: id, places: make(map[string]string, len(lines)-1)}
	last := ""
	for _, line := range lines[1:] {
		kind, name, _ := strings.Cut(line, " ")
		if kind != Keyring && kind != File || !goodName(name) || name <= last {
			return nil, bad
		}
		r.places[name], last = kind, name
	}
	return r, nil
}

func (r *record) encode() []byte {
	b := []byte(recordHead + r.id + "\n")
	for _, name := range slices.Sorted(maps.Keys(r.places)) {
		b = append(b, r.places[name]+" "+name+"\n"...)
	}
	return b
}

// record reads the record. That there is none is a store without secrets, unless there is a vault.
func (v *vault) record() (*record, *protocol.Error) {
	if err := v.safe(); err != nil {
		return nil, err
	}
	path := v.path(recordName)
	src, err := readWhole(path, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := stat(v.path(vaultName)); !errors.Is(err, fs.ErrNotExist) {
			return nil, v.lost("The record of secrets " + path + " is missing beside its vault")
		}
		return &record{places: map[string]string{}}, nil
	}
	if err != nil {
		return nil, unreadable("The record of secrets "+path, err)
	}
	r, err := decodeRecord(src)
	if err != nil {
		return nil, v.lost("The record of secrets " + path + " is damaged")
	}
	return r, nil
}

// locked runs fn on the record while no other process changes it.
func (v *vault) locked(ctx context.Context, fn func(*record) *protocol.Error) *protocol.Error {
	if err := v.makeDir(); err != nil {
		return err
	}
	unlock, err := v.lock(ctx, v.path(lockName), patience)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := v.record()
	if err != nil {
		return err
	}
	if r.id == "" {
		id := make([]byte, idLength/2)
		_, _ = rand.Read(id) // never fails
		r.id = hex.EncodeToString(id)
		if err := v.save(r); err != nil { // before a vault can be there without it
			return err
		}
	}
	return fn(r)
}

func (v *vault) put(r *record, name, kind string) *protocol.Error {
	r.places[name] = kind
	return v.save(r)
}

func (v *vault) drop(r *record, name string) *protocol.Error {
	delete(r.places, name)
	return v.save(r)
}

func (v *vault) save(r *record) *protocol.Error {
	text := r.encode()
	if len(text) > maxRecord {
		return fail("The record of secrets " + v.path(recordName) + " is full; nothing was changed.").WithHint("hcpx status")
	}
	return v.replace(v.path(recordName), text)
}

// lost is a sentence on what cannot be read any more, with the way out that destroys nothing.
func (v *vault) lost(what string) *protocol.Error {
	return fail(what + "; it was left as it is. Restore it from a backup, or move the directory away and connect again.").
		WithHint("mv " + protocol.Word(v.o.Dir) + " " + protocol.Word(v.o.Dir+".damaged"))
}
