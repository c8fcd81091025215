package vault

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"filippo.io/age"

	"hcpx/internal/protocol"
)

// The vault is an age file, so that age itself opens it with the key file. In it are a line vaultHead and one line
// "name, tab, value in base64" for each secret, sorted.
const vaultHead = "hcpx-vault 1\n"

// maxVault bounds the vault, which is read and written whole.
const maxVault = 16 << 20

// secrets are what a vault holds, sorted by name.
type secrets []secret

type secret struct {
	name  string
	value []byte
}

func (s secrets) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s, name, func(e secret, n string) int { return strings.Compare(e.name, n) })
}

// get gives a copy.
func (s secrets) get(name string) ([]byte, bool) {
	i, found := s.find(name)
	if !found {
		return nil, false
	}
	return bytes.Clone(s[i].value), true
}

func (s *secrets) set(name string, value []byte) {
	i, found := s.find(name)
	if found {
		clear((*s)[i].value)
		(*s)[i].value = bytes.Clone(value)
		return
	}
	*s = slices.Insert(*s, i, secret{name, bytes.Clone(value)})
}

func (s *secrets) remove(name string) bool {
	i, found := s.find(name)
	if found {
		clear((*s)[i].value)
		*s = slices.Delete(*s, i, i+1)
	}
	return found
}

func (s secrets) wipe() {
	for _, e := range s {
		clear(e.value)
	}
}

// decodeVault takes just what encode gives. Its error says nothing of the content.
func decodeVault(text []byte) (all secrets, err error) {
	defer func() {
		if err != nil {
			all.wipe()
			all = nil
		}
	}()
	bad := errors.New("it is not the content of a vault")
	rest, known := bytes.CutPrefix(text, []byte(vaultHead))
	if !known {
		return nil, bad
	}
	strict, last := base64.StdEncoding.Strict(), ""
	for len(rest) > 0 {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		word, coded, split := bytes.Cut(line, []byte("\t"))
		name := string(word)
		if !ended || !split || !goodName(name) || name <= last || bytes.ContainsRune(coded, '\r') {
			return all, bad
		}
		value := make([]byte, strict.DecodedLen(len(coded)))
		n, err := strict.Decode(value, coded)
		all = append(all, secret{name, value[:n]})
		if err != nil || n == 0 || n > MaxValue {
			return all, bad
		}
		rest, last = after, name
	}
	return all, nil
}

func (s secrets) size() int {
	n := len(vaultHead)
	for _, e := range s {
		n += len(e.name) + 2 + base64.StdEncoding.EncodedLen(len(e.value))
	}
	return n
}

func (s secrets) encode() []byte {
	b := make([]byte, 0, s.size()) // never grown, so that no copy is left behind
	b = append(b, vaultHead...)
	for _, e := range s {
		b = append(append(b, e.name...), '\t')
		b = base64.StdEncoding.AppendEncode(b, e.value)
		b = append(b, '\n')
	}
	return b
}

// read opens the vault with a key. Only a vault that was begun is missed.
func (v *vault) read(k *key) (secrets, *protocol.Error) {
	path := v.path(vaultName)
	sealed, err := readWhole(path, maxVault+maxVault/64)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, v.lost("The vault " + path + " is missing")
	case err != nil:
		return nil, unreadable("The vault "+path, err)
	}
	text, err := unseal(sealed, k.ids)
	defer clear(text)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, v.wrongKey(k)
	}
	var all secrets
	if err == nil {
		all, err = decodeVault(text)
	}
	if err != nil {
		return nil, v.lost("The vault " + path + " is damaged")
	}
	return all, nil
}

// unseal decrypts into one buffer, which the caller clears.
func unseal(sealed []byte, ids []age.Identity) ([]byte, error) {
	plain, err := age.Decrypt(bytes.NewReader(sealed), ids...)
	if err != nil {
		return nil, err
	}
	text := make([]byte, len(sealed)) // the sealed form is always the longer one
	n, err := io.ReadFull(plain, text)
	if err == nil {
		clear(text)
		return nil, errors.New("more was decrypted than was encrypted")
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		clear(text)
		return nil, err
	}
	return text[:n], nil
}

func seal(text []byte, to age.Recipient) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to)
	if err == nil {
		_, err = w.Write(text)
		err = errors.Join(err, w.Close())
	}
	return sealed.Bytes(), err
}

// write replaces the vault whole.
func (v *vault) write(k *key, all secrets) *protocol.Error {
	if all.size() > maxVault {
		return fail("The vault " + v.path(vaultName) + " is full; nothing was changed.").WithHint("hcpx status")
	}
	text := all.encode()
	defer clear(text)
	sealed, err := seal(text, k.to)
	if err != nil {
		return protocol.Fail(protocol.InternalError, "The vault could not be encrypted; nothing was changed.")
	}
	return v.replace(v.path(vaultName), sealed)
}

// begin makes an empty vault when no name is in one yet, so that one which is missing later is known to be lost.
func (v *vault) begin(k *key, r *record) *protocol.Error {
	_, err := stat(v.path(vaultName))
	if !errors.Is(err, fs.ErrNotExist) || r.has(File) {
		return nil
	}
	if _, err := stat(v.path(ownKeyName)); k.usual && !errors.Is(err, fs.ErrNotExist) {
		return raced() // one with a passphrase was begun meanwhile
	}
	return v.write(k, nil)
}
