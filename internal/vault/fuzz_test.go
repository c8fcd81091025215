package vault

import (
	"bytes"
	"testing"

	"filippo.io/age"
)

// §8.3: the record is taken just as it is written.
func FuzzRecord(f *testing.F) {
	r := &record{id: "00112233445566778899aabbccddeeff", places: map[string]string{"a": File, "local/human:ada/pack/é": Keyring}}
	f.Add(r.encode())
	f.Add([]byte("hcpx-secrets 1 00112233445566778899aabbccddeeff\nvault b\nvault a\n"))
	f.Add([]byte("hcpx-secrets 1 00112233445566778899aabbccddeefF\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := decodeRecord(src)
		if err != nil {
			return
		}
		if again := r.encode(); !bytes.Equal(again, src) {
			t.Errorf("%q became %q", src, again)
		}
	})
}

// §8.3: so is what is in a vault.
func FuzzVaultContent(f *testing.F) {
	f.Add(secrets{{"a", []byte("one")}, {"b", []byte{0, 255}}}.encode())
	f.Add([]byte(vaultHead + "a\tYQ==\na\tYQ==\n"))
	f.Add([]byte(vaultHead + "a\tYR==\n"))
	f.Add([]byte(vaultHead + "a\tY\rQ==\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		all, err := decodeVault(src)
		if err != nil {
			if all != nil {
				t.Error("an error with secrets")
			}
			return
		}
		if again := all.encode(); !bytes.Equal(again, src) {
			t.Errorf("%q became %q", src, again)
		}
	})
}

// §8.3: any file in the vault's place is refused or is one that was sealed with the key.
func FuzzVaultFile(f *testing.F) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	whole, err := seal(secrets{{"a", []byte("one")}}.encode(), id.Recipient())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add([]byte("age-encryption.org/v1\n-> X25519 a\nb\n--- c\n"))
	f.Add([]byte("-----BEGIN AGE ENCRYPTED FILE-----\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		text, err := unseal(src, []age.Identity{id})
		if err == nil && !bytes.Equal(src, whole) {
			t.Errorf("%d bytes that were never sealed opened as %q", len(src), text)
		}
	})
}

// §8.3: a key file is parsed or refused.
func FuzzKeyFile(f *testing.F) {
	text, err := newKeyText()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("# only a comment\n\n"))
	f.Add([]byte("AGE-SECRET-KEY-1QQQQ"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if k, err := parseKey(src); err == nil && (k.to == nil || len(k.ids) == 0) {
			t.Error("a key that seals nothing")
		}
	})
}

// §8.3: a passphrase costs a fraction of a second, once in a process (docs/decisions/0017).
func BenchmarkPassphrase(b *testing.B) {
	for range b.N {
		to, err := age.NewScryptRecipient("a passphrase")
		if err != nil {
			b.Fatal(err)
		}
		to.SetWorkFactor(workFactor)
		if _, err := seal([]byte("text"), to); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	o := Options{Dir: b.TempDir() + "/secrets", Config: b.TempDir()}
	s := Open(o)
	for i := range 20 {
		if err := s.Set(b.Context(), string(rune('a'+i)), bytes.Repeat([]byte("v"), 2000)); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		if _, _, err := s.Get(b.Context(), "c"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	s := Open(Options{Dir: b.TempDir() + "/secrets", Config: b.TempDir()})
	for range b.N {
		if err := s.Set(b.Context(), "name", []byte("a value")); err != nil {
			b.Fatal(err)
		}
	}
}
