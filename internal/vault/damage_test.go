//go:build unix

package vault_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"hcpx/internal/protocol"
	"hcpx/internal/vault"
)

const canary = "canary-7f3a9c-value"

// scene is a store with one secret, named "name".
type scene struct {
	o           vault.Options
	record, age string
	key         string
}

func newScene(t *testing.T) scene {
	o := home(t)
	set(t, vault.Open(o), "name", canary)
	return scene{o, filepath.Join(o.Dir, "record"), filepath.Join(o.Dir, "vault.age"), filepath.Join(o.Config, "vault.key")}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func write(t *testing.T, path string, text []byte, mode fs.FileMode) {
	t.Helper()
	must(t, os.WriteFile(path, text, mode))
	must(t, os.Chmod(path, mode))
}

// link moves a file away and has a symbolic link in its place.
func link(t *testing.T, path string) {
	t.Helper()
	must(t, os.Rename(path, path+".real"))
	must(t, os.Symlink(path+".real", path))
}

// directory has a directory in the place of a file.
func directory(t *testing.T, path string) {
	t.Helper()
	must(t, os.Remove(path))
	must(t, os.Mkdir(path, 0o700))
}

// newKey writes a key file of its own.
func newKey(t *testing.T, path string) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	must(t, err)
	write(t, path, []byte(id.String()+"\n"), 0o600)
	return id
}

// seal writes a vault with a content of its own, under the key that is there.
func (c scene) seal(t *testing.T, text string) {
	t.Helper()
	ids, err := age.ParseIdentities(bytes.NewReader(read(t, c.key)))
	must(t, err)
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, ids[0].(*age.X25519Identity).Recipient())
	must(t, err)
	_, err = w.Write([]byte(text))
	must(t, err)
	must(t, w.Close())
	write(t, c.age, sealed.Bytes(), 0o600)
}

// tree is all that lies below, with content and mode.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || filepath.Base(path) == "lock" {
			return err
		}
		fmt.Fprint(&b, path, " ", info.Mode())
		if info.Mode().IsRegular() {
			fmt.Fprintf(&b, " %x", sha256.Sum256(read(t, path)))
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

var damages = []struct {
	name, says, hint string
	do               func(t *testing.T, c *scene)
}{
	{"vault cut off", "vault.age is damaged", "mv ", func(t *testing.T, c *scene) { must(t, os.Truncate(c.age, 60)) }},
	{"vault cut off in its content", "vault.age is damaged", "mv ", func(t *testing.T, c *scene) { must(t, os.Truncate(c.age, int64(len(read(t, c.age))-3))) }},
	{"vault empty", "vault.age is damaged", "mv ", func(t *testing.T, c *scene) { must(t, os.Truncate(c.age, 0)) }},
	{"vault longer", "vault.age is damaged", "mv ", func(t *testing.T, c *scene) { write(t, c.age, append(read(t, c.age), 'x'), 0o600) }},
	{"vault in plain text", "vault.age is damaged", "mv ", func(t *testing.T, c *scene) {
		write(t, c.age, []byte("hcpx-vault 1\nname\tdmFsdWUtdmFsdWU=\n"), 0o600)
	}},
	{"one bit of the content", "vault.age is damaged", "mv ", func(t *testing.T, c *scene) {
		b := read(t, c.age)
		b[len(b)-5] ^= 1
		write(t, c.age, b, 0o600)
	}},
	{"sealed, and no vault", "vault.age is damaged", "mv ", func(t *testing.T, c *scene) { c.seal(t, "hello\n") }},
	{"sealed, a name twice", "vault.age is damaged", "mv ", func(t *testing.T, c *scene) {
		c.seal(t, "hcpx-vault 1\nname\tdmFsdWUx\nname\tdmFsdWUy\n")
	}},
	{"vault missing", "vault.age is missing", "mv ", func(t *testing.T, c *scene) { must(t, os.Remove(c.age)) }},
	{"vault is a link", "vault.age is a symbolic link", "hcpx doctor", func(t *testing.T, c *scene) { link(t, c.age) }},
	{"vault is a directory", "vault.age is no regular file", "hcpx doctor", func(t *testing.T, c *scene) { directory(t, c.age) }},
	{"vault too large", "vault.age is larger than any", "hcpx doctor", func(t *testing.T, c *scene) { must(t, os.Truncate(c.age, 2*vault.MaxVault)) }},
	{"record damaged", "record is damaged", "mv ", func(t *testing.T, c *scene) { write(t, c.record, append(read(t, c.record), "vault"...), 0o600) }},
	{"record empty", "record is damaged", "mv ", func(t *testing.T, c *scene) { write(t, c.record, nil, 0o600) }},
	{"record missing", "record is missing beside its vault", "mv ", func(t *testing.T, c *scene) { must(t, os.Remove(c.record)) }},
	{"record is a link", "record is a symbolic link", "hcpx doctor", func(t *testing.T, c *scene) { link(t, c.record) }},
	{"key of group", "vault.key of the vault can be read by other users", "chmod 600 ", func(t *testing.T, c *scene) { must(t, os.Chmod(c.key, 0o640)) }},
	{"key of all", "vault.key of the vault can be read by other users", "chmod 600 ", func(t *testing.T, c *scene) { must(t, os.Chmod(c.key, 0o604)) }},
	{"key is a link", "vault.key of the vault is a symbolic link", "hcpx doctor", func(t *testing.T, c *scene) { link(t, c.key) }},
	{"key missing", "vault.key of the vault is missing", "mv ", func(t *testing.T, c *scene) { must(t, os.Remove(c.key)) }},
	{"key is no key", "vault.key of the vault holds no age identity", "head ", func(t *testing.T, c *scene) { write(t, c.key, []byte("AGE-SECRET-KEY-1"+canary), 0o600) }},
	{"key empty", "vault.key of the vault holds no age identity", "head ", func(t *testing.T, c *scene) { write(t, c.key, nil, 0o600) }},
	{"another key", "does not open the vault", "export HCP_VAULT_KEY_FILE=", func(t *testing.T, c *scene) { newKey(t, c.key) }},
	{"named key missing", "which HCP_VAULT_KEY_FILE names, does not exist", "age-keygen -o ", func(t *testing.T, c *scene) { c.o.KeyFile = c.key + ".none" }},
	{"named key is another", "does not open the vault", "unset HCP_VAULT_KEY_FILE", func(t *testing.T, c *scene) {
		c.o.KeyFile = c.key + ".other"
		newKey(t, c.o.KeyFile)
	}},
	{"named key of group", "vault.key.own of the vault can be read by other users", "chmod 600 ", func(t *testing.T, c *scene) {
		c.o.KeyFile = c.key + ".own"
		must(t, os.Rename(c.key, c.o.KeyFile))
		must(t, os.Chmod(c.o.KeyFile, 0o640))
	}},
	{"named key is a link", "vault.key.link of the vault is a symbolic link", "hcpx doctor", func(t *testing.T, c *scene) {
		c.o.KeyFile = c.key + ".link"
		must(t, os.Symlink(c.key, c.o.KeyFile))
	}},
	{"no configuration", "no directory of configuration", "export HCP_VAULT_KEY_FILE=", func(t *testing.T, c *scene) { c.o.Config = "" }},
	{"directory of group", "can be reached by other users", "chmod 700 ", func(t *testing.T, c *scene) { must(t, os.Chmod(c.o.Dir, 0o750)) }},
	{"directory is a link", "is a symbolic link", "ls -ld ", func(t *testing.T, c *scene) { link(t, c.o.Dir) }},
	{"directory is a file", "is no directory", "ls -ld ", func(t *testing.T, c *scene) {
		must(t, os.RemoveAll(c.o.Dir))
		write(t, c.o.Dir, nil, 0o600)
	}},
}

// §8.3: whatever is wrong has its own sentence and a next command, and nothing is lost, made or overwritten.
func Test_8_3_WhatIsWrongIsLeftAsItIs(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			c := newScene(t)
			d.do(t, &c)
			root := filepath.Dir(filepath.Dir(c.o.Dir))
			before := tree(t, root)
			s := vault.Open(c.o)
			value, found, get := s.Get(t.Context(), "name")
			if found || value != nil {
				t.Error("there was an answer")
			}
			_, forget := s.Forget(t.Context(), "name")
			for what, err := range map[string]*protocol.Error{
				"get": get, "set": s.Set(t.Context(), "name", []byte("other-value")), "set new": s.Set(t.Context(), "new", []byte("other-value")),
				"delete": s.Delete(t.Context(), "name"), "forget": forget, "check": s.Check(t.Context()),
			} {
				if err == nil || err.Code != protocol.BindingFailed || !strings.Contains(err.Message, d.says) || !strings.HasPrefix(err.Hint, d.hint) {
					t.Errorf("%s: %v, hint %q", what, err, hintOf(err))
				}
				if err != nil && strings.Contains(fmt.Sprint(err, err.Hint, err.Details), "canary") {
					t.Errorf("%s shows the value: %v", what, err)
				}
			}
			if after := tree(t, root); after != before {
				t.Errorf("changed:\n%s\n%s", before, after)
			}
		})
	}
}

func hintOf(err *protocol.Error) string {
	if err == nil {
		return ""
	}
	return err.Hint
}

// §8.3: a lock file that leads elsewhere is not opened.
func Test_8_3_ALockIsNoLink(t *testing.T) {
	c := newScene(t)
	link(t, filepath.Join(c.o.Dir, "lock"))
	if err := vault.Open(c.o).Set(t.Context(), "name", []byte("other")); err == nil || !strings.Contains(err.Message, "symbolic link") {
		t.Error(err)
	}
	if got := have(t, vault.Open(c.o), "name"); got != canary {
		t.Errorf("%q", got)
	}
}

// §8.3: each byte of a vault counts; a changed one never gives another value.
func Test_8_3_EveryByteCounts(t *testing.T) {
	c := newScene(t)
	whole := read(t, c.age)
	step := 1
	if testing.Short() {
		step = 7
	}
	for i := 0; i < len(whole); i += step {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		write(t, c.age, b, 0o600)
		if value, found, err := vault.Open(c.o).Get(t.Context(), "name"); err == nil {
			t.Fatalf("byte %d: %d bytes, found %v", i, len(value), found)
		}
	}
}

// §8.3: another user's directory or key is none of this user's.
func Test_8_3_WhatIsAnothers(t *testing.T) {
	if os.Geteuid() != 0 {
		c := newScene(t)
		must(t, os.Chmod(c.age, 0))
		if _, _, err := vault.Open(c.o).Get(t.Context(), "name"); err == nil || !strings.Contains(err.Message, "permission denied") {
			t.Error(err)
		}
		return
	}
	c := newScene(t)
	must(t, os.Chown(c.key, 12345, 12345))
	if _, _, err := vault.Open(c.o).Get(t.Context(), "name"); err == nil || !strings.Contains(err.Message, "vault.key of the vault is another user's") {
		t.Error(err)
	}
	must(t, os.Chown(c.o.Dir, 12345, 12345))
	if _, _, err := vault.Open(c.o).Get(t.Context(), "name"); err == nil || !strings.Contains(err.Message, "belongs to another user") {
		t.Error(err)
	}
	// What root made is closed to a plain user, with a sentence.
	root := everyones(t)
	set(t, vault.Open(options(root, "")), "name", canary)
	must(t, os.Chmod(filepath.Join(root, "home"), 0o755))
	child := everyonesChild(t, root, "", "set", "name", "other-value", "0")
	child.SysProcAttr = as(plain())
	child.Stderr = nil
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "permission denied") || !strings.Contains(string(out), "record") {
		t.Errorf("%v\n%s", err, out)
	}
	if got := have(t, vault.Open(options(root, "")), "name"); got != canary {
		t.Errorf("%q", got)
	}
}
