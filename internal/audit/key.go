package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
)

// keyPrefix begins the key file; what follows is the private key in base64: seed and public key.
const keyPrefix = "hcpx-audit-ed25519 "

// ErrNoKey: there is no key file, so no head can be checked.
var ErrNoKey = errors.New("the audit key does not exist")

// keyless says that the key is not there, or not for this user to read.
func keyless(err error) bool { return errors.Is(err, ErrNoKey) || errors.Is(err, fs.ErrPermission) }

// key is the key file as read. Ed25519 builds large tables at its first use in a process, so private is
// made when something is signed, and not before. A key is for one goroutine at a time.
type key struct {
	path    string
	seed    []byte
	public  ed25519.PublicKey
	private ed25519.PrivateKey
	hmac    hash.Hash // under the derived key; one for all, since keying it costs as much as its use
}

// newKey derives the key of the MAC from both halves: with a damaged one, no head fits.
func newKey(path string, pair []byte) *key {
	k := &key{path: path, seed: pair[:ed25519.SeedSize], public: pair[ed25519.SeedSize:]}
	derive := hmac.New(sha256.New, k.seed)
	derive.Write([]byte("hcpx audit head mac\n"))
	derive.Write(k.public)
	k.hmac = hmac.New(sha256.New, derive.Sum(nil))
	return k
}

func (k *key) mac(text []byte) []byte {
	k.hmac.Reset()
	k.hmac.Write(text)
	return k.hmac.Sum(nil)
}

// entryMAC is the MAC of an entry: of its line up to the member that holds it. No head begins like a line,
// so one key serves both.
func (k *key) entryMAC(start []byte) string { return base64.StdEncoding.EncodeToString(k.mac(start)) }

// wrote says whether who has the key wrote a line.
func (k *key) wrote(raw []byte) bool {
	const before, after = `,"mac":"`, `"}`
	at := len(raw) - len(before) - macLength - len(after)
	return at > 0 && hmac.Equal(raw[at:], []byte(before+k.entryMAC(raw[:at])+after))
}

// check makes the private key and says whether the public one belongs to it.
func (k *key) check() error {
	if k.private == nil {
		private := ed25519.NewKeyFromSeed(k.seed)
		if !bytes.Equal(private[ed25519.SeedSize:], k.public) {
			return damaged(k.path)
		}
		k.private = private
	}
	return nil
}

func (k *key) sign(h Head) (Head, error) {
	if err := k.check(); err != nil {
		return Head{}, err
	}
	h.Key, h.Sig = k.public, ed25519.Sign(k.private, h.message())
	return h, nil
}

func damaged(path string) error { return fmt.Errorf("the audit key %s is damaged", path) }

// readKey reads the key (§15.4). One that others can read proves nothing, so it is refused.
func readKey(path string) (*key, error) {
	f, err := openFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoKey
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the audit key %s can be read by other users; chmod 600 it, or remove it and have a new one made", path)
	}
	text, err := readStart(f, 256)
	if err != nil {
		return nil, fmt.Errorf("the audit key %s cannot be read: %w", path, err)
	}
	body, ok := bytes.CutPrefix(bytes.TrimSpace(text), []byte(keyPrefix))
	pair, err := base64.StdEncoding.DecodeString(string(body))
	if !ok || err != nil || len(pair) != ed25519.PrivateKeySize {
		return nil, damaged(path)
	}
	return newKey(path, pair), nil
}

// makeKey makes the key on first need. Of several processes one wins: the file appears whole under its
// name by a link, and everyone reads that.
func makeKey(path string) (*key, error) {
	k, err := readKey(path)
	if !errors.Is(err, ErrNoKey) {
		return k, err
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	_, fresh, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".audit.key-*") // 0600
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(keyPrefix + base64.StdEncoding.EncodeToString(fresh) + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	err = errors.Join(err, os.Remove(f.Name()), syncPath(filepath.Dir(path)))
	if err != nil {
		return nil, err
	}
	return readKey(path)
}
