package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func headText(t *testing.T, cfg Config) []byte {
	t.Helper()
	text, err := os.ReadFile(cfg.Dir + "/head")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// keyed is the head as one reads it who has the key, and the key.
func keyed(t *testing.T, cfg Config) (sealed, *key) {
	t.Helper()
	k, err := readKey(cfg.KeyPath)
	if err != nil {
		t.Fatal(err)
	}
	s, err := unseal(headText(t, cfg), k)
	if err != nil {
		t.Fatal(err)
	}
	return s, k
}

// reseal writes a head as one can who has the key.
func reseal(t *testing.T, cfg Config, s sealed, k *key) {
	t.Helper()
	text, err := s.seal(k)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.Dir+"/head", text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// appendOne is an append in a process of its own.
func appendOne(t *testing.T, cfg Config, durable bool) *FileLog {
	t.Helper()
	l := Open(cfg)
	t.Cleanup(func() { l.Close() })
	if err := l.Append(Entry{Kind: Denial, ID: "one"}, durable); err != nil {
		t.Fatal(err)
	}
	return l
}

func Test_15_4_ReadsAreUnderTheMACAndOnlyWhatIsSyncedIsSigned(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.SegmentBytes = 1 << 20
	appendOne(t, cfg, true)
	first, k := keyed(t, cfg)
	if first.signed.Seq != 1 || !ed25519.Verify(k.public, first.signed.message(), first.signed.Sig) {
		t.Fatalf("a synced entry is not signed: %+v", first)
	}
	for n := uint64(2); n <= batch; n++ {
		l := appendOne(t, cfg, false)
		s, _ := keyed(t, cfg)
		if l.key.private != nil || s.now.Seq != n || s.now.Synced != 1 || !bytes.Equal(s.signed.Sig, first.signed.Sig) {
			t.Fatalf("entry %d: key in use %v, head %+v", n, l.key.private != nil, s)
		}
	}
	if r := verify(t, cfg); !r.OK || r.Head.Seq != batch {
		t.Errorf("report: %+v", r)
	}
	appendOne(t, cfg, false)
	if s, _ := keyed(t, cfg); s.signed.Seq != batch+1 || s.now.Synced != batch+1 {
		t.Errorf("the batch is full and not signed: %+v", s)
	}
	appendOne(t, cfg, false)
	appendOne(t, cfg, true)
	if s, _ := keyed(t, cfg); s.signed.Seq != batch+3 || s.now.Synced != batch+3 {
		t.Errorf("a write is not signed: %+v", s)
	}
	cfg.SegmentBytes = 1
	appendOne(t, cfg, false)
	if s, _ := keyed(t, cfg); s.now.Segment != 2 || s.signed.Seq != batch+4 || s.now.Synced != batch+4 {
		t.Errorf("the first entry of a segment is not signed: %+v", s)
	}
	if r := verify(t, cfg); !r.OK || len(r.Notes) > 0 {
		t.Errorf("report: %+v", r)
	}
}

func Test_15_4_TheAnchorIsSignedWhenItIsShown(t *testing.T) {
	cfg := filled(t, 4)
	appendOne(t, cfg, false)
	before := headText(t, cfg)
	h, err := ReadHead(cfg)
	if err != nil || h.Seq != 9 || !ed25519.Verify(h.Key, h.message(), h.Sig) {
		t.Errorf("anchor: %+v, %v", h, err)
	}
	if r := verify(t, cfg); !r.OK || !bytes.Equal(r.Head.Sig, h.Sig) {
		t.Errorf("report: %+v", r)
	}
	if !bytes.Equal(before, headText(t, cfg)) {
		t.Error("reading wrote the head")
	}
}

func Test_15_4_EachByteOfTheHeadIsUnderTheMAC(t *testing.T) {
	cfg := filled(t, 2)
	s, k := keyed(t, cfg)
	text := headText(t, cfg)
	if again, err := s.seal(k); err != nil || !bytes.Equal(again, text) {
		t.Errorf("%q, %v", again, err)
	}
	for i := range text {
		forged := bytes.Clone(text)
		forged[i] ^= 1
		if _, err := unseal(forged, k); !errors.Is(err, ErrHead) {
			t.Errorf("byte %d changed unseen: %v", i, err)
		}
	}
	for _, other := range [][]byte{nil, text[:len(text)-1], append(bytes.Clone(text), '\n')} {
		if _, err := unseal(other, k); !errors.Is(err, ErrHead) {
			t.Errorf("%d bytes: %v", len(other), err)
		}
	}
}

// Who makes MACs has the key; what is signed is checked against the chain all the same.
func Test_15_4_TheSignedPartNamesAnEntryOfTheChain(t *testing.T) {
	for _, c := range []struct {
		name, want string
		forge      func(t *testing.T, s *sealed, k *key)
	}{
		{"a forged signature", "head-forged", func(t *testing.T, s *sealed, _ *key) { s.signed.Sig[0] ^= 1 }},
		{"a signature of another entry", "head-forged", func(t *testing.T, s *sealed, _ *key) { s.signed.Seq-- }},
		{"another entry of that number", "changed", func(t *testing.T, s *sealed, k *key) {
			s.signed.Seq, s.signed.Hash = 5, strings.Repeat("ab", 32)
			resign(t, s, k)
		}},
		{"the end is not what was signed", "head-forged", func(t *testing.T, s *sealed, k *key) {
			s.signed.Seq, s.signed.Hash = s.now.Seq, strings.Repeat("ab", 32)
			resign(t, s, k)
		}},
		{"signed beyond the end", "head-forged", func(t *testing.T, s *sealed, k *key) {
			s.signed.Seq = s.now.Seq + 1
			resign(t, s, k)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := filled(t, 40)
			appendOne(t, cfg, false)
			s, k := keyed(t, cfg)
			c.forge(t, &s, k)
			reseal(t, cfg, s, k)
			if r := verify(t, cfg); !slices.Contains(kinds(r.Problems), c.want) {
				t.Errorf("%+v", r)
			}
			if _, err := ReadHead(cfg); c.want == "head-forged" && !errors.Is(err, ErrHead) {
				t.Errorf("the anchor was signed: %v", err)
			}
		})
	}
}

func resign(t *testing.T, s *sealed, k *key) {
	t.Helper()
	var err error
	if s.signed, err = k.sign(s.signed); err != nil {
		t.Fatal(err)
	}
}

// A break may count on from entries that are gone; what was signed must be there all the same.
func Test_15_4_ASignedEntryThatIsMissingIsNamed(t *testing.T) {
	cfg := filled(t, 1)
	edit(t, cfg, 1, func(l []string) []string { return l[:1] })
	appendOne(t, cfg, false) // finds the cut, and breaks
	s, k := keyed(t, cfg)
	s.signed.Seq = 2
	resign(t, &s, k)
	reseal(t, cfg, s, k)
	if r := verify(t, cfg); !slices.Equal(kinds(r.Problems), []string{"break", "removed"}) {
		t.Errorf("%+v", r)
	}
}

// An old line of the same chain was signed by the key, and is not what stands under the MAC.
func moveSignature(t *testing.T, cfg Config, _ int) {
	old := bytes.Split(headText(t, cfg), []byte("\n"))
	appendRuns(t, cfg, "newer", 1)
	lines := bytes.Split(headText(t, cfg), []byte("\n"))
	lines[2] = old[2]
	text := bytes.Join(lines, []byte("\n"))
	if err := os.WriteFile(cfg.Dir+"/head", text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func forgeMAC(t *testing.T, cfg Config, _ int) {
	text := headText(t, cfg)
	copy(text[macAt:], base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err := os.WriteFile(cfg.Dir+"/head", text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func Test_15_4_AKeyWithADamagedHalfIsRefusedAndNothingWritten(t *testing.T) {
	for name, at := range map[string]int{"seed": 0, "public": ed25519.SeedSize} {
		t.Run(name, func(t *testing.T) {
			cfg := filled(t, 3)
			_, k := keyed(t, cfg)
			pair := slices.Concat(k.seed, k.public)
			pair[at] ^= 1
			if err := os.WriteFile(cfg.KeyPath, []byte(keyPrefix+base64.StdEncoding.EncodeToString(pair)), 0o600); err != nil {
				t.Fatal(err)
			}
			segs, err := segments(cfg.Dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, durable := range []bool{false, true} {
				if err := Open(cfg).Append(Entry{Kind: Intent}, durable); err == nil || !strings.Contains(err.Error(), "is damaged") {
					t.Errorf("durable %v: %v", durable, err)
				}
			}
			if now, err := segments(cfg.Dir); err != nil || !slices.Equal(now, segs) {
				t.Errorf("segments %v, before %v, %v", now, segs, err)
			}
			if _, err := Verify(cfg); err == nil {
				t.Error("verified with a damaged key")
			}
			if _, err := ReadHead(cfg); err == nil {
				t.Error("an anchor from a damaged key")
			}
		})
	}
}

// The longest head has room.
func Test_15_4_AHeadOfAnyLengthFits(t *testing.T) {
	k := newKey("", ed25519.NewKeyFromSeed(make([]byte, 32)))
	end := Head{Seq: 1<<64 - 1, Hash: zeroHash, Segment: 99999999, Size: 1<<63 - 1, Synced: 1<<64 - 1, Time: "2026-01-02T03:04:05.123456789Z"}
	signed, err := k.sign(end)
	if err != nil {
		t.Fatal(err)
	}
	text, err := sealed{now: end, signed: signed}.seal(k)
	if err != nil || len(text) != headSize {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if s, err := inspect(text, k); err != nil || s.now.Seq != end.Seq {
		t.Errorf("%+v, %v", s, err)
	}
}
