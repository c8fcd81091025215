package redteamtest

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What a test that was started again is told.
const (
	insideVar = "REDTEAM_INSIDE"
	setuidVar = "REDTEAM_SETUID"
)

// nobody is the ordinary user whom root becomes.
const nobody = 65534

// Users runs the calling test in processes of its own: as this user, and as an ordinary one when this is root. Each
// is the leader of a session with a terminal, as a shell's child is, and may leave core dumps. In such a process
// run is called; its place is a directory that this user owns and nobody else is kept from. With -short, which the race
// detector runs with, this user is enough: the code is the same, and the kernel is not what is looked at.
func Users(t *testing.T, run func(t *testing.T, place string)) {
	if place := os.Getenv(insideVar); place != "" {
		run(t, place)
		return
	}
	again(t, os.Getuid())
	if os.Getuid() == 0 && !testing.Short() {
		again(t, nobody)
	}
}

// again starts the test once more as a user.
func again(t *testing.T, uid int) {
	t.Helper()
	place := shared(t)
	program := copied(t, place)
	inner := place + "/in"
	must(t, os.Mkdir(inner, 0o755))
	must(t, os.Chown(inner, uid, gid(uid)))
	master, slave, err := terminal()
	must(t, err)
	defer master.Close()
	defer slave.Close()
	must(t, os.Chown(slave.Name(), uid, gid(uid)))
	pattern := "^" + t.Name() + "$"
	if _, rows, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
		pattern += "/" + rows
	}
	c := exec.Command(program, "-test.v", "-test.count=1", "-test.timeout=6m", "-test.run="+pattern, fmt.Sprintf("-test.short=%t", testing.Short()))
	c.Env = append(os.Environ(), insideVar+"="+inner, "TMPDIR="+inner, "HOME="+inner)
	if uid != 0 {
		c.Env = append(c.Env, setuidVar+"="+setuid(t, place, program))
	}
	c.Dir, c.ExtraFiles = inner, []*os.File{slave}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	if uid != os.Getuid() {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid(uid))}
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Errorf("as uid %d: %v\n%s", uid, err, failures(out.String()))
		return
	}
	t.Logf("as uid %d: %d rows\n%s", uid, strings.Count(out.String(), "--- PASS"), notes(out.String()))
}

func gid(uid int) int {
	if uid == os.Getuid() {
		return os.Getgid()
	}
	return uid
}

// shared is a directory that every user can reach; t.TempDir is its owner's alone.
func shared(t *testing.T) string {
	t.Helper()
	place, err := os.MkdirTemp("", "red")
	must(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(place); err != nil {
			t.Error(err)
		}
	})
	must(t, os.Chmod(place, 0o755))
	real, err := filepath.EvalSymlinks(place)
	must(t, err)
	return real
}

// copied puts this program where every user can start it.
func copied(t *testing.T, place string) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	must(t, err)
	defer from.Close()
	program := place + "/attacker"
	to, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(to, from)
	must(t, err)
	must(t, to.Close())
	return program
}

// setuid is the program with root's setuid bit; an ordinary user cannot make one.
func setuid(t *testing.T, place, program string) string {
	t.Helper()
	if os.Getuid() != 0 {
		return ""
	}
	code, err := os.ReadFile(program)
	must(t, err)
	at := place + "/setuid"
	must(t, os.WriteFile(at, code, 0o755))
	must(t, os.Chmod(at, 0o755|os.ModeSetuid))
	return at
}

// failures is what a failed run says, without the rows that passed.
func failures(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- PASS") && !strings.Contains(text, "void here") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// notes are the rows that say something: those that this machine cannot prove.
func notes(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, "void") {
			b.WriteString(line)
		}
	}
	return b.String()
}
