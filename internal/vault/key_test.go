//go:build unix

package vault_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"hcpx/internal/protocol"
	"hcpx/internal/vault"
	"hcpx/internal/vault/vaulttest"
)

// person answers for a passphrase, and counts how often it was asked.
type person struct {
	says         string
	fresh, known int
}

func (p *person) ask(_ context.Context, fresh bool) ([]byte, *protocol.Error) {
	if fresh {
		p.fresh++
	} else {
		p.known++
	}
	return []byte(p.says), nil
}

func refusedBy(t *testing.T, o vault.Options, says string) {
	t.Helper()
	s := vault.Open(o)
	_, _, get := s.Get(t.Context(), "name")
	for _, err := range []*protocol.Error{get, s.Set(t.Context(), "name", []byte("other-value")), s.Delete(t.Context(), "name")} {
		if err == nil || err.Code != protocol.BindingFailed || !strings.Contains(err.Message, says) || err.Hint == "" || strings.Contains(err.Message, "phrase one") {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// §8.3: a vault under a passphrase. It is asked for once in a process, and there is no way around it.
func Test_8_3_Passphrase(t *testing.T) {
	o := home(t)
	p := &person{says: "phrase one"}
	o.ByPassphrase, o.Passphrase = true, p.ask
	s := vault.Open(o)
	set(t, s, "name", canary)
	set(t, s, "other", "other-value")
	if got := have(t, s, "name"); got != canary || p.fresh != 1 || p.known != 0 {
		t.Errorf("%q, asked %+v", got, p)
	}
	o.ByPassphrase = false // what a vault is kept by was decided when it was made
	next := vault.Open(o)
	set(t, next, "name", canary+"2")
	if got := have(t, next, "name"); got != canary+"2" || p.known != 1 || p.fresh != 1 {
		t.Errorf("%q, asked %+v", got, p)
	}
	if _, err := os.Stat(filepath.Join(o.Config, "vault.key")); err == nil {
		t.Error("a key file was made")
	}
	before := tree(t, o.Dir)
	wrong := o
	wrong.Passphrase = (&person{says: "phrase two"}).ask
	refusedBy(t, wrong, "The passphrase does not open the vault")
	wrong.Passphrase = (&person{}).ask
	refusedBy(t, wrong, "is empty")
	wrong.Passphrase = nil
	refusedBy(t, wrong, "nobody to ask")
	wrong.Passphrase = func(context.Context, bool) ([]byte, *protocol.Error) {
		return nil, protocol.Fail(protocol.BindingFailed, "The person went away.").WithHint("hcpx status")
	}
	refusedBy(t, wrong, "went away")
	wrong.KeyFile = filepath.Join(t.TempDir(), "key")
	newKey(t, wrong.KeyFile)
	refusedBy(t, wrong, "does not open the vault")
	if after := tree(t, o.Dir); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
	if got := have(t, vault.Open(o), "other"); got != "other-value" {
		t.Errorf("%q", got)
	}
}

// §8.3: a vault keeps the key that it was made with: who wants it under a passphrase now is told so, by the next secret and by
// doctor, and what is kept goes on. Looking asks nobody.
func Test_8_3_APassphraseWantedTooLate(t *testing.T) {
	o := home(t)
	set(t, vault.Open(o), "name", canary)
	p := &person{says: "phrase one"}
	o.ByPassphrase, o.Passphrase = true, p.ask
	s := vault.Open(o)
	const says = "it was made with a key file, which stays its key"
	fails(t, s.Set(t.Context(), "new", []byte(canary)), says, "mv ")
	fails(t, s.Check(t.Context()), says, "mv ")
	set(t, s, "name", canary+"2")
	must(t, os.Rename(o.Dir, o.Dir+".old"))
	s = vault.Open(o)
	set(t, s, "new", canary)
	if p.fresh != 1 {
		t.Errorf("asked %+v", p)
	}
	if err := vault.Open(o).Check(t.Context()); err != nil || p.known != 0 {
		t.Errorf("%v, asked %+v", err, p)
	}
	file := filepath.Join(t.TempDir(), "key")
	newKey(t, file)
	o.KeyFile, o.Dir = file, filepath.Join(t.TempDir(), "secrets") // a key that is named is the key
	set(t, vault.Open(o), "new", canary)
	if p.fresh != 1 {
		t.Errorf("asked %+v", p)
	}
}

// §8.3: a new passphrase is no shorter than a secret, and nothing is made without one.
func Test_8_3_PassphraseOfAFreshVault(t *testing.T) {
	o := home(t)
	o.ByPassphrase = true
	for _, p := range []func(context.Context, bool) ([]byte, *protocol.Error){nil, (&person{says: "seven77"}).ask} {
		o.Passphrase = p
		if err := vault.Open(o).Set(t.Context(), "name", []byte(canary)); err == nil || err.Code != protocol.BindingFailed {
			t.Error(err)
		}
	}
	if _, err := os.Stat(o.Dir); err == nil {
		t.Error("something was made")
	}
	o.Config = filepath.Join(filepath.Dir(o.Dir), "other") // which has a key, of another store
	must(t, os.MkdirAll(o.Config, 0o700))
	newKey(t, filepath.Join(o.Config, "vault.key"))
	p := &person{says: "phrase one"}
	o.Passphrase = p.ask
	set(t, vault.Open(o), "name", canary)
	if p.fresh != 1 {
		t.Errorf("asked %+v", p)
	}
	refusedBy(t, vault.Options{Dir: o.Dir, Config: o.Config}, "nobody to ask")
}

// §8.3: a damaged key under a passphrase, and one that asks for hours of work, are errors.
func Test_8_3_DamagedKeyUnderAPassphrase(t *testing.T) {
	o := home(t)
	o.ByPassphrase, o.Passphrase = true, (&person{says: "phrase one"}).ask
	set(t, vault.Open(o), "name", canary)
	path := filepath.Join(o.Dir, "key.age")
	whole := read(t, path)
	head, rest, _ := bytes.Cut(whole, []byte(" 16\n"))
	for name, text := range map[string][]byte{
		"empty": {}, "cut off": whole[:len(whole)-1], "no key": []byte("hello"), "hours of work": append(append(bytes.Clone(head), " 40\n"...), rest...),
	} {
		t.Run(name, func(t *testing.T) {
			write(t, path, text, 0o600)
			refusedBy(t, o, "key.age of the vault is damaged")
		})
	}
	link(t, path)
	refusedBy(t, o, "is a symbolic link")
}

// §8.3: with HCP_VAULT_KEY_FILE no other key is made. Its first identity seals, each opens; both kinds of age are taken.
func Test_8_3_NamedKeyFile(t *testing.T) {
	o := home(t)
	o.KeyFile = filepath.Join(t.TempDir(), "key")
	first := newKey(t, o.KeyFile)
	vaulttest.Run(t, func(t *testing.T) vaulttest.Place {
		mine := home(t)
		mine.KeyFile = o.KeyFile
		return vaulttest.Place{Kind: vault.File, Open: func() vault.Store { return vault.Open(mine) }}
	})
	set(t, vault.Open(o), "name", canary)
	if _, err := os.Stat(o.Config); err == nil {
		t.Error("a configuration was made")
	}
	second, err := age.GenerateHybridIdentity()
	must(t, err)
	write(t, o.KeyFile, []byte("# a comment\n"+second.String()+"\n"+first.String()+"\n"), 0o600)
	if got := have(t, vault.Open(o), "name"); got != canary {
		t.Errorf("%q", got)
	}
	set(t, vault.Open(o), "other", "sealed with the second")
	write(t, o.KeyFile, []byte(second.String()+"\n"), 0o600)
	if got := have(t, vault.Open(o), "name"); got != canary {
		t.Errorf("after the key was changed: %q", got)
	}
}

// §8.3: the vault is an age file that age opens with the key file, whatever becomes of hcpx.
func Test_8_3_AgeOpensTheVault(t *testing.T) {
	c := newScene(t)
	ids, err := age.ParseIdentities(bytes.NewReader(read(t, c.key)))
	must(t, err)
	plain, err := age.Decrypt(bytes.NewReader(read(t, c.age)), ids...)
	must(t, err)
	text, err := io.ReadAll(plain)
	must(t, err)
	if want := "hcpx-vault 1\nname\t" + base64.StdEncoding.EncodeToString([]byte(canary)) + "\n"; string(text) != want {
		t.Errorf("%q", text)
	}
	for path, want := range map[string]fs.FileMode{c.o.Dir: 0o700, c.age: 0o600, c.record: 0o600, c.key: 0o600, filepath.Join(c.o.Dir, "lock"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// §8.3: looking makes nothing.
func Test_8_3_LookingMakesNothing(t *testing.T) {
	o := home(t)
	s := vault.Open(o)
	if _, found, err := s.Get(t.Context(), "name"); found || err != nil {
		t.Error(found, err)
	}
	if err := s.Delete(t.Context(), "name"); err != nil {
		t.Error(err)
	}
	if left, err := s.Forget(t.Context(), "name"); left != "" || err != nil {
		t.Error(left, err)
	}
	if err := s.Check(t.Context()); err != nil || s.Kind(t.Context()) != vault.File {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(o.Dir)); err == nil {
		t.Error("the home was made")
	}
}

// §8.3: never plain text on a disk, in no form, also of what was deleted or never finished.
func Test_8_3_NoPlainTextOnDisk(t *testing.T) {
	o := home(t)
	p := &person{says: canary + "-phrase"}
	o.ByPassphrase, o.Passphrase = true, p.ask
	keyed := home(t)
	for _, o := range []vault.Options{o, keyed} {
		s := vault.Open(o)
		for _, name := range []string{"a", "b", "c"} {
			set(t, s, name, canary+name)
		}
		if err := s.Delete(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		half := vault.OpenFaulty(o, func(point string) error {
			if point == "vault.age.new:synced" {
				return os.ErrDeadlineExceeded
			}
			return nil
		})
		if err := half.Set(t.Context(), "c", []byte(canary+"half")); err == nil || strings.Contains(err.Message, "canary") {
			t.Error(err)
		}
		sweep(t, filepath.Dir(filepath.Dir(o.Dir)), canary)
	}
}

// sweep looks for a value in every form in every file below a directory, and in the names.
func sweep(t *testing.T, dir, value string) {
	t.Helper()
	raw := []byte(value)
	forms := []string{value, url.QueryEscape(value), hex.EncodeToString(raw)}
	for skip := range 3 { // base64 at each offset, without what its neighbours change
		coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, skip), raw...))
		forms = append(forms, coded[4:len(coded)-4], base64.RawURLEncoding.EncodeToString(append(make([]byte, skip), raw...))[4:len(coded)-4])
	}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text := append(read(t, path), path...)
		for _, form := range forms {
			if bytes.Contains(text, []byte(form)) {
				t.Errorf("%s holds %q", path, form)
			}
		}
		return nil
	}))
}

// §8.3: of a vault under a passphrase and one under a key file that are begun at once, one is made; the other is an
// error, and no secret is sealed with a key that will not be looked for.
func Test_8_3_TwoKindsOfVaultBegunAtOnce(t *testing.T) {
	for _, whole := range []bool{false, true} {
		o := home(t)
		phrased := o
		phrased.ByPassphrase, phrased.Passphrase = true, (&person{says: "phrase one"}).ask
		begun := false
		plain := vault.OpenFaulty(o, func(point string) error {
			if point == "vault.key.new:synced" && !begun {
				begun = true
				other := vault.OpenFaulty(phrased, func(point string) error {
					if point == "vault.age.new:write" && !whole {
						return os.ErrDeadlineExceeded // it got as far as its key
					}
					return nil
				})
				if err := other.Set(t.Context(), "name", []byte(canary)); (err == nil) != whole {
					t.Error(err)
				}
			}
			return nil
		})
		if err := plain.Set(t.Context(), "other", []byte(canary)); err == nil || err.Code != protocol.BindingFailed || !begun {
			t.Errorf("whole %v: %v", whole, err)
		}
		if got, want := have(t, vault.Open(phrased), "name"), map[bool]string{true: canary}[whole]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		set(t, vault.Open(phrased), "name", "value")
		if got := have(t, vault.Open(phrased), "name"); got != "value" {
			t.Errorf("%q", got)
		}
		refusedBy(t, o, "nobody to ask")
	}
}
