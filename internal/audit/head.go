package audit

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// headSize is the fixed length of audit/head: one write within one sector replaces all of it. Its last
// line is the MAC of all before it.
const (
	headSize  = 512
	macAt     = headSize - macLength - 1
	macLength = 44 // 32 bytes in base64
	headTitle = "hcpx audit head 2"
)

// zeroHash is the hash before the first entry.
var zeroHash = strings.Repeat("0", 64)

// Head is an end of the chain (§15.4). It is signed where it was synced, and whenever it is shown.
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

// ErrHead: audit/head is missing, or was not made with the key.
var ErrHead = errors.New("the audit head is missing or its signature is not valid")

// ErrCut: the newest segment is shorter than the head says.
var ErrCut = errors.New("entries that the audit head covers are missing")

// ErrLost: nothing is recorded, and something was done.
var ErrLost = errors.New("the whole audit is missing, and the store was changed before")

// message is what the signature of a head covers.
func (h Head) message() []byte {
	return fmt.Appendf(nil, "hcpx audit head 1\n%d\n%s\n%d\n%d\n%d\n%s\n", h.Seq, h.Hash, h.Segment, h.Size, h.Synced, h.Time)
}

func (h Head) appendTo(dst []byte) []byte {
	dst = strconv.AppendUint(dst, h.Seq, 10)
	dst = append(append(dst, ' '), h.Hash...)
	dst = strconv.AppendInt(append(dst, ' '), int64(h.Segment), 10)
	dst = strconv.AppendInt(append(dst, ' '), h.Size, 10)
	dst = strconv.AppendUint(append(dst, ' '), h.Synced, 10)
	return append(append(dst, ' '), h.Time...)
}

func headOf(f []string) (Head, error) {
	seq, err1 := strconv.ParseUint(f[0], 10, 64)
	segment, err2 := strconv.Atoi(f[2])
	size, err3 := strconv.ParseInt(f[3], 10, 64)
	synced, err4 := strconv.ParseUint(f[4], 10, 64)
	h := Head{Seq: seq, Hash: f[1], Segment: segment, Size: size, Synced: synced, Time: f[5]}
	return h, cmp.Or(err1, err2, err3, err4)
}

// sealed is what audit/head holds: where the chain ends, and the last end that was synced, which is
// signed. A MAC covers both, so that an append that syncs nothing needs no signature (decision 0004).
type sealed struct{ now, signed Head }

func (s sealed) body() []byte {
	b := append(make([]byte, 0, headSize), headTitle+"\n"...)
	b = append(s.now.appendTo(b), '\n')
	b = append(s.signed.appendTo(b), ' ')
	return append(base64.StdEncoding.AppendEncode(b, s.signed.Sig), '\n')
}

// parseSealed reads only what body writes.
func parseSealed(body []byte) (s sealed, ok bool) {
	body = bytes.TrimRight(body, " ")
	f := strings.Fields(strings.TrimPrefix(string(body), headTitle))
	if len(f) != 13 {
		return sealed{}, false
	}
	var err1, err2, err3 error
	s.now, err1 = headOf(f[:6])
	s.signed, err2 = headOf(f[6:12])
	s.signed.Sig, err3 = base64.StdEncoding.DecodeString(f[12])
	ok = cmp.Or(err1, err2, err3) == nil && bytes.Equal(s.body(), body) && s.signed.Seq <= s.now.Seq &&
		(s.signed.Seq < s.now.Seq || s.signed.Hash == s.now.Hash)
	return s, ok
}

// seal fills a head up to its MAC.
func (s sealed) seal(k *key) ([]byte, error) {
	text := s.body()
	if len(text) > macAt {
		return nil, errors.New("the audit head is too long")
	}
	for len(text) < macAt {
		text = append(text, ' ')
	}
	return append(base64.StdEncoding.AppendEncode(text, k.mac(text)), '\n'), nil
}

// unseal checks the MAC, which is all that an append needs to trust the head before it.
func unseal(text []byte, k *key) (sealed, error) {
	if len(text) == headSize && text[headSize-1] == '\n' {
		mac := base64.StdEncoding.AppendEncode(nil, k.mac(text[:macAt]))
		if hmac.Equal(mac, text[macAt:headSize-1]) {
			if s, ok := parseSealed(text[:macAt]); ok {
				return s, nil
			}
		}
	}
	return sealed{}, cmp.Or(k.check(), ErrHead) // with a damaged key no head fits
}

// inspect checks a head as readers do, the MAC and the signature, and signs where the chain ends now.
func inspect(text []byte, k *key) (sealed, error) {
	s, err := unseal(text, k)
	if err != nil {
		return sealed{}, err
	}
	if s.now, err = k.sign(s.now); err != nil {
		return sealed{}, err
	}
	if !ed25519.Verify(k.public, s.signed.message(), s.signed.Sig) {
		return sealed{}, ErrHead
	}
	return s, nil
}

// ReadHead reads and checks the head and signs it as it is now, as `hcpx audit head` shows it for an
// anchor outside. It writes nothing.
func ReadHead(cfg Config) (Head, error) {
	k, err := readKey(cfg.KeyPath)
	if err != nil {
		return Head{}, err
	}
	f, err := openFile(filepath.Join(cfg.Dir, "head"), os.O_RDONLY|noFollow, 0)
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
	text, err := readStart(f, headSize+1)
	if err != nil {
		return Head{}, err
	}
	s, err := inspect(text, k)
	return s.now, err
}

// Look is the quick look of `hcpx doctor` and `hcpx status`: the head is the key's, its segment is as long as
// it says, and all of it can be written; the log where heads are anchored takes connections. An audit to which nothing
// was written is well. It reads no entry and writes nothing.
func Look(cfg Config) error {
	a, err := anchorOf(cfg)
	if err == nil && a != nil {
		if err = a.reach(); err != nil {
			err = a.failed(err)
		}
		a.close()
	}
	if err != nil {
		return err
	}
	paths := []string{cfg.Dir}
	h, err := ReadHead(cfg)
	switch {
	case (errors.Is(err, ErrHead) || errors.Is(err, ErrNoKey)) && unwritten(cfg.Dir):
		if cfg.lost() {
			return ErrLost
		}
	case err != nil:
		return err
	default:
		paths = append(paths, filepath.Join(cfg.Dir, "head"))
	}
	if h.Size > 0 {
		path := segmentPath(cfg.Dir, h.Segment)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() < h.Size {
			return ErrCut
		}
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	for _, path := range paths {
		if err := writable(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// unwritten says that there is no entry, and no head but an empty file.
func unwritten(dir string) bool {
	segs, err := segments(dir)
	if err != nil || len(segs) > 0 {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, "head"))
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}
