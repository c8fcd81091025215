package redteamtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Report is what a pack of attacks answers: what worked, which is to be nothing, and why the rest did not.
type Report struct {
	Tried  int               `json:"tried"`
	Worked []string          `json:"worked"`
	Why    map[string]string `json:"why"`
}

// Said is what the report says of a row.
func (r Report) Said(row Row) (why string, worked bool) {
	name := row.ID + " " + row.Name
	return r.Why[name], slices.Contains(r.Worked, name)
}

// Plain are the rows that need nothing but to be started: no other network, nothing that is left behind, nothing
// that the docs allow.
func Plain(rows []Row) (plain []Row) {
	for _, r := range rows {
		if r.Mark == "" && r.Mode == "" && !r.Promised && !r.Nobody {
			plain = append(plain, r)
		}
	}
	return plain
}

// onPack are what the pack of attacks runs.
func onPack() map[string]Attack {
	return map[string]Attack{
		"all": all,
		"say": func(a []string) error { return json.NewEncoder(os.Stdout).Encode(a) },
		"spew": func([]string) error {
			for line := bytes.Repeat([]byte("y"), 4096); ; {
				if _, err := os.Stdout.Write(line); err != nil {
					return err
				}
			}
		},
		"hold":    hold,
		"blocked": blocked,
	}
}

// runtimeVar names the runtime to an attack that is no child of it.
const runtimeVar = "REDTEAM_RUNTIME"

// host is the process that started the run.
func host() int {
	if n := pid(os.Getenv(runtimeVar)); n > 0 {
		return n
	}
	return os.Getppid()
}

// all runs the rows that stand on standard input, each in a process of its own, and reports.
func all([]string) error {
	var rows []Row
	if err := json.NewDecoder(os.Stdin).Decode(&rows); err != nil {
		return err
	}
	report := Report{Tried: len(rows), Worked: []string{}, Why: map[string]string{}}
	for _, r := range rows {
		name := r.ID + " " + r.Name
		attempt := here
		if r.alone() {
			attempt = apart
		}
		said, err := attempt(r)
		report.Why[name] = said
		if err == nil {
			report.Worked = append(report.Worked, name)
		} else {
			report.Why[name] += err.Error()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// alone says whether an attack needs a process of its own: it changes what the process is, or tries descriptors by
// their numbers.
func (r Row) alone() bool {
	switch r.Attack {
	case "personality", "layers", "own-filter", "listener", "take-tty", "join-group", "change-uid", "change-gid", "chdir-read", "fchdir-fd", "creat",
		"core", "crash", "broker-race", "execveat", "userns", "clone-parent", "memfd":
		return true
	}
	return strings.HasSuffix(r.Attack, "-fd") || strings.HasPrefix(r.Attack, "t") || strings.HasPrefix(r.Attack, "launcher") ||
		r.ID == "RT11" || r.ID == "locks" || r.ID == "RT18"
}

// here runs an attack on a thread of its own; one that hangs is left behind.
func here(r Row) (said string, err error) {
	attack, ok := attacks()[r.Attack]
	if !ok {
		return "", errors.New("no such attack")
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- attack(r.Args)
	}()
	select {
	case err := <-done:
		return "", err
	case <-time.After(20 * time.Second):
		return "", errors.New("it hangs")
	}
}

// apart runs an attack in a process of its own.
func apart(r Row) (said string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "/proc/self/exe", append([]string{Arg, r.Attack}, r.Args...)...)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", runtimeVar, os.Getppid()))
	out, err := c.CombinedOutput()
	why := strings.TrimSpace(string(out))
	return why[:min(len(why), 200)] + " ", err
}

// hold waits until a file is there, so that somebody can look at the run meanwhile; the first file says that it began.
func hold(a []string) error {
	if err := os.WriteFile(a[0], []byte(os.Getenv("TOKEN")), 0o600); err != nil {
		return err
	}
	for range 3000 {
		if _, err := os.Stat(a[1]); err == nil {
			return json.NewEncoder(os.Stdout).Encode("held")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("nobody came")
}

// blocked is a container in small: it takes kernel features away, and becomes a program.
func blocked(a []string) error {
	gone := map[string][]uint32{
		"nothing":  {},
		"landlock": {unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF},
		"seccomp":  {unix.SYS_SECCOMP},
		"both":     {unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_SECCOMP},
		"no paths": {unix.SYS_OPENAT2},
		"no range": {unix.SYS_CLOSE_RANGE},
		"no names": {unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_UNSHARE, unix.SYS_CLONE3, unix.SYS_MOUNT},
	}[a[0]]
	if gone == nil {
		return fmt.Errorf("no such container: %s", a[0])
	}
	code := []unix.SockFilter{{Code: 0x20, K: 0}}
	for i, nr := range gone {
		code = append(code, unix.SockFilter{Code: 0x15, K: nr, Jt: uint8(len(gone) - i)})
	}
	code = append(code, unix.SockFilter{Code: 0x06, K: 0x7fff0000}, unix.SockFilter{Code: 0x06, K: 0x00050000 | uint32(unix.ENOSYS)})
	if _, err := load(0, code); err != nil {
		return err
	}
	return unix.Exec(a[1], a[1:], os.Environ())
}
