package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pair of which a program gets one end, and what came out of the other.
type terminal struct {
	t             *testing.T
	master, slave *os.File
	mu            sync.Mutex
	said          bytes.Buffer
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, master: master, slave: slave}
	t.Cleanup(func() { _ = errors.Join(slave.Close(), master.Close()) })
	go func() {
		part := make([]byte, 4096)
		for {
			n, err := master.Read(part)
			term.mu.Lock()
			term.said.Write(part[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.said.String()
}

// run starts a program on the terminal and types each answer once its question stands there.
func (x *terminal) run(c *exec.Cmd, answers ...[2]string) error {
	x.t.Helper()
	c.Stdin, c.Stdout, c.Stderr = x.slave, x.slave, x.slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	from := len(x.text())
	if err := c.Start(); err != nil {
		x.t.Fatal(err)
	}
	for _, a := range answers {
		await(x.t, func() bool { return strings.Contains(x.text()[from:], a[0]) }, x.text)
		from += strings.Index(x.text()[from:], a[0]) + len(a[0])
		if _, err := x.master.WriteString(a[1] + "\n"); err != nil {
			x.t.Fatal(err)
		}
	}
	return c.Wait()
}

// §8.3: with vault.key = "passphrase" a person makes the vault by typing one twice, unseen, and types it for every process that
// needs what lies in it. Where nobody can be asked nothing runs and nothing else is tried.
func Test_8_3_AVaultUnderAPassphrase(t *testing.T) {
	s := newSweeper(t)
	if err := os.Mkdir(filepath.Join(s.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.file("store/config.toml", "[identity]\nagents = \"trust-flags\"\n[vault]\nkey = \"passphrase\"\n", 0o600)
	s.must("", "install", filepath.Join(s.dir, "token"), "--allow-bin")
	s.must("", "activate", "token")
	if out, err := s.run(canaryOf("token")+"\n", "connect", "token"); err == nil || !strings.Contains(out, "asked of a person on a terminal") || !strings.Contains(out, "hcpx config show") {
		t.Errorf("%v %s", err, out)
	}
	x := newTerminal(t)
	const phrase = "correct horse battery"
	on := func(args ...string) *exec.Cmd {
		c := s.command(args...)
		c.Dir = filepath.Join(s.dir, "work")
		c.Env = append(c.Env, "PATH="+systemPath)
		return c
	}
	if err := x.run(on("connect", "token"), [2]string{"token for token", canaryOf("token")}, [2]string{"passphrase of the vault", phrase},
		[2]string{"Once more, the passphrase", phrase + "!"}); err == nil {
		t.Errorf("two passphrases that differ made a vault: %s", x.text())
	}
	if err := x.run(on("connect", "token"), [2]string{"token for token", canaryOf("token")}, [2]string{"passphrase of the vault", phrase},
		[2]string{"Once more, the passphrase", phrase}); err != nil {
		t.Fatalf("%v %s", err, x.text())
	}
	if err := x.run(on("exec", "token", "leak", "--", "how=ok"), [2]string{"passphrase of the vault", "another phrase"}); err == nil {
		t.Errorf("a wrong passphrase ran: %s", x.text())
	}
	if err := x.run(on("exec", "token", "leak", "--", "how=ok"), [2]string{"passphrase of the vault", phrase}); err != nil || !strings.Contains(x.text(), "[redacted]") {
		t.Errorf("%v %s", err, x.text())
	}
	if left := s.found([]byte(x.text())); len(left) > 0 || strings.Contains(x.text(), phrase) {
		t.Errorf("it was shown: %q", x.text())
	}
	for _, words := range []string{"exec token leak --json -- how=ok", "exec token leak --json --as agent:claude-code -- how=ok"} {
		s.must("", "grant", "agent:claude-code", "verb.exec.write")
		out, err := s.run("", strings.Fields(words)...)
		if err == nil || !strings.Contains(out, `"binding_failed"`) || strings.Contains(out, "[redacted]") {
			t.Errorf("%s: %v %s", words, err, out)
		}
	}
	if out := s.must("", "doctor", "--json"); !strings.Contains(out, "encrypted file of the store") {
		t.Error(out)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "store", "secrets", "key.age")); err != nil {
		t.Error(err)
	}
	s.sweep()
}

// §8.3, §10.2: no child reads the key that HCP_VAULT_KEY_FILE names: not in its workspace, nor by an allowed read or directory, nor
// where every command may read.
func Test_8_3_NoChildReadsTheNamedKey(t *testing.T) {
	s := newSweeper(t)
	s.file("work/deep/vault.key", "no key yet", 0o600)
	s.must("", "install", filepath.Join(s.dir, "env"), "--allow-bin")
	s.must("", "activate", "env")
	s.must("", "connect", "env")
	s.must("", "exec", "env", "leak", "--", "how=ok")
	for _, key := range []string{filepath.Join(s.dir, "work", "deep", "vault.key"), "deep/vault.key", "/usr/share/none/vault.key"} {
		s.env = append(s.env[:1:1], "HCP_VAULT_KEY_FILE="+key)
		out, err := s.run("", "exec", "env", "leak", "--json", "--", "how=ok")
		if err == nil || strings.Contains(out, "[redacted]") || !strings.Contains(out, "vault.key") {
			t.Errorf("%s: %v %s", key, err, out)
		}
	}
	s.env = append(s.env[:1:1], "HCP_VAULT_KEY_FILE="+filepath.Join(s.dir, "elsewhere", "vault.key"))
	s.must("", "exec", "env", "leak", "--", "how=ok")
}
