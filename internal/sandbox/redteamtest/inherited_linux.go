package redteamtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// onInherited use what the runtime holds: descriptors, environment, its programs.
func onInherited() map[string]Attack {
	return map[string]Attack{
		"open-fd":   anyFd(func(fd int) error { _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); return err }),
		"openat-fd": anyFd(func(fd int) error { return closedFd(unix.Openat(fd, "secret", unix.O_RDONLY, 0)) }),
		"fchdir-fd": anyFd(func(fd int) error {
			if err := unix.Fchdir(fd); err != nil {
				return err
			}
			_, err := os.ReadFile("secret")
			return err
		}),
		"reopen-fd": anyFd(func(fd int) error {
			return closedFd(unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY, 0))
		}),
		"sendfile": anyFd(toPipe(func(from, to int) (int, error) { return unix.Sendfile(to, from, new(int64), 4) })),
		"splice":   anyFd(toPipe(func(from, to int) (int, error) { return spliced(unix.Splice(from, new(int64), to, nil, 4, 0)) })),
		"copy-range": func(a []string) error {
			to, err := os.Create(a[len(a)-1])
			if err != nil {
				return err
			}
			return anyFd(func(fd int) error {
				_, err := unix.CopyFileRange(fd, new(int64), int(to.Fd()), nil, 4, 0)
				return err
			})(a[:len(a)-1])
		},
		"send-fd": anyFd(func(fd int) error { _, err := unix.Write(fd, []byte("x")); return err }),
		"utime-fd": anyFd(func(fd int) error {
			return unix.Futimes(fd, []unix.Timeval{{Sec: 1}, {Sec: 1}})
		}),
		"xattr-fd": anyFd(func(fd int) error { return unix.Fsetxattr(fd, "user.test", []byte("1"), 0) }),
		"flock":    anyFd(func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }),
		"ofd-lock": anyFd(func(fd int) error { return ofdLock(fd) }),
		"has-env": func(names []string) error {
			for _, name := range names {
				if os.Getenv(name) != "" {
					return nil
				}
			}
			return errors.New("not set: " + strings.Join(names, ", "))
		},
		"by-name": func(a []string) error { return exec.Command(a[0]).Run() },
		"setuid-program": func(a []string) error {
			return start(a[0], "superuser")
		},
		"superuser": func([]string) error {
			if os.Geteuid() != 0 {
				return errors.New("not the superuser")
			}
			return nil
		},
	}
}

// anyFd tries something on descriptors; one that works is enough.
func anyFd(try func(fd int) error) Attack {
	return func(args []string) error {
		err := errors.New("no descriptor")
		for _, a := range args {
			if err = try(pid(a)); err == nil {
				return nil
			}
		}
		return err
	}
}

// toPipe moves bytes of a descriptor into a pipe of one's own.
func toPipe(move func(from, to int) (int, error)) func(int) error {
	return func(fd int) error {
		var pipe [2]int
		if err := unix.Pipe(pipe[:]); err != nil {
			return err
		}
		if n, err := move(fd, pipe[1]); err != nil || n == 0 {
			return fmt.Errorf("%d bytes: %w", n, err)
		}
		return nil
	}
}

func spliced(n int64, err error) (int, error) { return int(n), err }

func ofdLock(fd int) error {
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
}

// onSurvival leave something behind. The mark stands in the arguments of what is left; whether it lives is
// seen from outside.
func onSurvival() map[string]Attack {
	return map[string]Attack{
		"leave": func(a []string) error { return leave(a[0], a[1]) },
		"left": func(a []string) error {
			if err := resist(a[0]); err != nil {
				return err
			}
			fmt.Println("resists") // tells the parent, which waits for it
			time.Sleep(time.Hour)
			return nil
		},
	}
}

// leave starts a process that resists in some way, waits until it does, and ends.
func leave(how, mark string) error {
	if how == "orphan" { // its parent dies before it starts
		return exec.Command("/proc/self/exe", Arg, "leave", "session", mark).Run()
	}
	c := exec.Command("/proc/self/exe", Arg, "left", how, mark)
	if how == "pipe" {
		c.Stderr = os.Stderr // holds the output of the run
	}
	c.SysProcAttr = &unix.SysProcAttr{Setsid: how == "session", Setpgid: how == "group"}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		return err
	}
	if how == "stopped" {
		return unix.Kill(c.Process.Pid, unix.SIGSTOP)
	}
	return nil
}

// resist is what a process does to outlive its run.
func resist(how string) error {
	switch how {
	case "reaper": // adopts what it starts
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
	case "layers":
		return layers(15)
	case "own-filter":
		return ownFilter()
	case "undumpable":
		return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
}
