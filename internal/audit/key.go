package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// keyPrefix begins the key file; what follows is the private key in base64.
const keyPrefix = "hcpx-audit-ed25519 "

// ErrNoKey: there is no key file, so no head can be checked.
var ErrNoKey = errors.New("the audit key does not exist")

// readKey reads the key (§15.4). One that others can read proves nothing, so it is refused.
func readKey(path string) (ed25519.PrivateKey, error) {
	f, err := os.Open(path)
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
	text := make([]byte, 256)
	n, err := f.Read(text)
	if err != nil {
		return nil, fmt.Errorf("the audit key %s cannot be read: %w", path, err)
	}
	body, ok := bytes.CutPrefix(bytes.TrimSpace(text[:n]), []byte(keyPrefix))
	key, err := base64.StdEncoding.DecodeString(string(body))
	if !ok || err != nil || len(key) != ed25519.PrivateKeySize || !bytes.Equal(ed25519.NewKeyFromSeed(key[:ed25519.SeedSize]), key) {
		return nil, fmt.Errorf("the audit key %s is damaged", path)
	}
	return key, nil
}

// makeKey makes the key on first need. Of several processes one wins: the file appears whole under its
// name by a link, and everyone reads that.
func makeKey(path string) (ed25519.PrivateKey, error) {
	key, err := readKey(path)
	if !errors.Is(err, ErrNoKey) {
		return key, err
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
