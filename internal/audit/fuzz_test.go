package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// spoiled is an audit whose files hold anything, with a key.
func spoiled(t *testing.T, segment, head []byte) Config {
	cfg := config(t.TempDir())
	cfg.KeyPath = filepath.Join(cfg.Dir, "..", "key")
	key := []byte(keyPrefix + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(make([]byte, 32))) + "\n")
	if err := errors.Join(os.MkdirAll(cfg.Dir, 0o700), os.WriteFile(cfg.KeyPath, key, 0o600),
		os.WriteFile(segmentPath(cfg.Dir, 1), segment, 0o600), os.WriteFile(cfg.Dir+"/head", head, 0o600)); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func seeds(f *testing.F) {
	f.Add([]byte("{\"seq\":1,\"kind\":\"intent\",\"id\":\"a\",\"prev\":\""+zeroHash+"\"}\n{\"seq\":2"), []byte("{}"))
	f.Add([]byte("\n\n{}\n"), []byte(""))
	f.Add([]byte("{\"seq\":1,\"kind\":\"break\",\"detail\":{\"reason\":\"torn\"}}\n"), bytes.Repeat([]byte(" "), headSize))
}

func FuzzVerify(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, segment, head []byte) {
		cfg := spoiled(t, segment, head)
		if r := verify(t, cfg); r.OK {
			t.Errorf("what no key signed verifies: %+v", r)
		}
		tail, err := Tail(cfg, 3)
		if err != nil || len(tail) > 3 {
			t.Error(tail, err)
		}
		if _, err := Find(cfg, "a"); err != nil {
			t.Error(err)
		}
	})
}

func FuzzAppend(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, segment, head []byte) {
		cfg := spoiled(t, segment, head)
		appendRuns(t, cfg, "later", 1)
		if r := verify(t, cfg); r.OK || r.Head.Seq == 0 || slices.Contains(kinds(r.Problems), "tail-cut") {
			t.Errorf("after an append: %+v", r)
		}
	})
}

func FuzzHead(f *testing.F) {
	f.Add([]byte(headTitle + "\n1 a 1 2 3 t\n1 a 1 2 3 t c2ln\n   "))
	f.Add([]byte(headTitle + "\n2 a 1 2 3 t\n1 b 1 2 3 t \n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s, ok := parseSealed(body); ok && !bytes.Equal(s.body(), bytes.TrimRight(body, " ")) {
			t.Errorf("%q was read as %+v", body, s)
		}
	})
}
