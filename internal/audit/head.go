package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// headSize is the fixed length of audit/head: one write within one sector replaces all of it.
const headSize = 512

// zeroHash is the hash before the first entry.
var zeroHash = strings.Repeat("0", 64)

// Head is the signed end of the chain (§15.4), kept apart in audit/head.
type Head struct {
	Seq     uint64 `json:"seq"`     // of the last entry
	Hash    string `json:"hash"`    // of the last entry
	Segment int    `json:"segment"` // number of the file that holds it
	Size    int64  `json:"size"`    // of that file
	Synced  uint64 `json:"synced"`  // entries up to this one are known to be on disk
	Time    string `json:"time"`
	Key     []byte `json:"key"` // public key
	Sig     []byte `json:"sig"`
}

// ErrHead: audit/head is missing, or not what the key signed.
var ErrHead = errors.New("the audit head is missing or its signature is not valid")

func (h Head) message() []byte {
	return fmt.Appendf(nil, "hcpx audit head 1\n%d\n%s\n%d\n%d\n%d\n%s\n", h.Seq, h.Hash, h.Segment, h.Size, h.Synced, h.Time)
}

// encodeHead signs a head and fills it up to headSize.
func encodeHead(h Head, key ed25519.PrivateKey) ([]byte, error) {
	h.Key = key[ed25519.SeedSize:]
	h.Sig = ed25519.Sign(key, h.message())
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(text) >= headSize {
		return nil, errors.New("the audit head is too long")
	}
	text = append(text, bytes.Repeat([]byte{' '}, headSize-len(text))...)
	text[headSize-1] = '\n'
	return text, nil
}

// decodeHead checks the signature with the key's own public half; the one in the file is only shown.
func decodeHead(text []byte, key ed25519.PrivateKey) (Head, error) {
	var h Head
	if len(text) != headSize || json.Unmarshal(text, &h) != nil {
		return Head{}, ErrHead
	}
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok || !ed25519.Verify(public, h.message(), h.Sig) {
		return Head{}, ErrHead
	}
	return h, nil
}

// ReadHead reads and checks the head, as `hcpx audit head` shows it for an anchor outside.
func ReadHead(cfg Config) (Head, error) {
	key, err := readKey(cfg.KeyPath)
	if err != nil {
		return Head{}, err
	}
	f, err := os.Open(filepath.Join(cfg.Dir, "head"))
	if errors.Is(err, fs.ErrNotExist) {
		return Head{}, ErrHead
	}
	if err != nil {
		return Head{}, err
	}
	defer f.Close()
	if err := lock(f, shared); err != nil {
		return Head{}, err
	}
	text, err := readAll(f)
	if err != nil {
		return Head{}, err
	}
	return decodeHead(text, key)
}

// readAll reads a head file, at most a little more than a head.
func readAll(f *os.File) ([]byte, error) {
	text := make([]byte, headSize+1)
	n, err := f.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return text[:n], nil
}
