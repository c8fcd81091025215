package redteamtest

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attacks are the probes of the red team; nil says that one worked.
func attacks() map[string]Attack {
	all := map[string]Attack{}
	for _, group := range []map[string]Attack{onFiles(), onMetadata(), onNetwork(), onProcesses(), onThreads(), onKernel(),
		onTerminals(), onDevices(), onInherited(), onSurvival(), onVictims(), onProc(), onSelf(), onForeign(), onCalls(), onSockets(), onHandles(),
		onPack(), {"victim": victim}} {
		maps.Copy(all, group)
	}
	return all
}

// onFiles reach files and programs.
func onFiles() map[string]Attack {
	return map[string]Attack{
		"read":     func(a []string) error { _, err := os.ReadFile(a[0]); return err },
		"list":     func(a []string) error { _, err := os.ReadDir(a[0]); return err },
		"write":    func(a []string) error { return os.WriteFile(a[0], []byte("x"), 0o600) },
		"append":   func(a []string) error { f, err := os.OpenFile(a[0], os.O_APPEND|os.O_WRONLY, 0); return closed(f, err) },
		"truncate": func(a []string) error { return os.Truncate(a[0], 0) },
		"otrunc":   func(a []string) error { f, err := os.OpenFile(a[0], os.O_RDONLY|os.O_TRUNC, 0); return closed(f, err) },
		"remove":   func(a []string) error { return os.Remove(a[0]) },
		"mkdir":    func(a []string) error { return os.Mkdir(a[0], 0o700) },
		"rename":   func(a []string) error { return os.Rename(a[0], a[1]) },
		"hardlink": func(a []string) error { return os.Link(a[0], a[1]) },
		"through": func(a []string) error {
			if err := os.Symlink(a[0], a[1]); err != nil {
				return err
			}
			_, err := os.ReadFile(a[1])
			return err
		},
		"chdir-read": func(a []string) error {
			if err := os.Chdir(filepath.Dir(a[0])); err != nil {
				return err
			}
			_, err := os.ReadFile(filepath.Base(a[0]))
			return err
		},
		"exec":   func(a []string) error { return exec.Command(a[0], a[1:]...).Run() },
		"memfd":  memfd,
		"hijack": func([]string) error { return os.WriteFile(os.Getenv("PATH")+"/added", nil, 0o700) },
	}
}

// onMetadata change what Landlock does not guard.
func onMetadata() map[string]Attack {
	return map[string]Attack{
		"chmod":      func(a []string) error { return unix.Chmod(a[0], 0o640) },
		"chmod-at":   chmodAt,
		"chmod2":     func(a []string) error { return unix.Fchmodat(unix.AT_FDCWD, a[0], 0o640, unix.AT_SYMLINK_NOFOLLOW) },
		"fchmod":     fchmod,
		"proc-chmod": procChmod,
		"link-chmod": func(a []string) error {
			if err := os.Symlink(a[0], a[1]); err != nil {
				return err
			}
			return unix.Chmod(a[1], 0o640)
		},
		"chown":      func(a []string) error { return unix.Lchown(a[0], os.Getuid(), os.Getgid()) },
		"utime":      func(a []string) error { return os.Chtimes(a[0], time.Unix(1, 0), time.Unix(1, 0)) },
		"xattr":      func(a []string) error { return unix.Lsetxattr(a[0], "user.test", []byte("1"), 0) },
		"xattr-home": func([]string) error { return unix.Lsetxattr(os.Getenv("HOME"), "user.test", []byte("1"), 0) },
		"setuid":     func(a []string) error { return unix.Chmod(a[0], 0o4755) },
		"creat":      creatSetuid,
		"immutable":  immutable,
	}
}

// onNetwork leave by sockets.
func onNetwork() map[string]Attack {
	return map[string]Attack{
		"inet":    func([]string) error { return closedFd(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)) },
		"udp":     func([]string) error { return closedFd(unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)) },
		"netlink": func([]string) error { return closedFd(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)) },
		"unix":    func(a []string) error { c, err := net.Dial("unix", a[0]); return closedConn(c, err) },
		"dgram-pair": func([]string) error {
			_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			return err
		},
		"dial": func(a []string) error { c, err := net.Dial("tcp", a[0]); return closedConn(c, err) },
	}
}

// onProcesses reach other processes.
func onProcesses() map[string]Attack {
	return map[string]Attack{
		"signal": func(a []string) error { return unix.Kill(pid(a[0]), 0) },
		"pidfd-signal": func(a []string) error {
			fd, err := unix.PidfdOpen(pid(a[0]), 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, 0, nil, 0)
		},
		"ptrace": func(a []string) error { return unix.PtraceSeize(pid(a[0])) },
		"vmread": vmRead,
		"getfd":  getFd,
		"prlimit": func(a []string) error {
			l := unix.Rlimit{}
			return errors.Join(unix.Prlimit(pid(a[0]), unix.RLIMIT_CORE, nil, &l), unix.Prlimit(pid(a[0]), unix.RLIMIT_CORE, &l, nil))
		},
		"renice": func(a []string) error { return unix.Setpriority(unix.PRIO_PROCESS, pid(a[0]), 0) },
		"schedule": func(a []string) error {
			var cpus unix.CPUSet
			return errors.Join(unix.SchedGetaffinity(pid(a[0]), &cpus), unix.SchedSetaffinity(pid(a[0]), &cpus))
		},
		"async-owner": func(a []string) error {
			_, err := unix.FcntlInt(0, unix.F_SETOWN, pid(a[0]))
			return err
		},
		"clone-parent": func([]string) error {
			c := exec.Command("/proc/self/exe", Arg, "nothing")
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT}
			return c.Start()
		},
		"bomb": bomb,
		"spin": func([]string) error {
			for spun := 0; ; spun++ { // until a limit ends it
				if spun < 0 {
					return nil
				}
			}
		},
	}
}

// onKernel reach the kernel or what was taken away.
func onKernel() map[string]Attack {
	return map[string]Attack{
		"shm":      func([]string) error { _, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600); return err },
		"mqueue":   mqueue,
		"io_uring": func([]string) error { return raw(unix.SYS_IO_URING_SETUP, 4, ioUring(), 0) },
		"keyring": func([]string) error {
			_, err := unix.AddKey("user", "sandbox-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		},
		"userns": func([]string) error {
			c := exec.Command("/proc/self/exe", Arg, "nothing")
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
			return c.Run()
		},
		"unshare": func([]string) error { return unix.Unshare(unix.CLONE_FILES) },
		"clone3":  func([]string) error { return notAbsent(raw(unix.SYS_CLONE3, 0, 0, 0)) },
		"nothing": func([]string) error { return nil },
		"regain":  func([]string) error { return caps() },
	}
}

// onThreads reach the thread that started them.
func onThreads() map[string]Attack {
	return map[string]Attack{
		"launcher": func(a []string) error {
			return anyThread(a[0], func(tid int) error {
				return unix.Kill(tid, 0)
			})
		},
		"launcher-thread": func(a []string) error {
			return anyThread(a[0], func(tid int) error { return unix.Tgkill(host(), tid, 0) })
		},
		"launcher-pidfd": func(a []string) error {
			const thread = 0x80 // PIDFD_THREAD
			return anyThread(a[0], func(tid int) error {
				fd, err := unix.PidfdOpen(tid, thread)
				if err != nil {
					return err
				}
				return errors.Join(unix.PidfdSendSignal(fd, 0, nil, 0), unix.Close(fd))
			})
		},
		"launcher-files": func(a []string) error {
			return anyThread(a[0], func(tid int) error {
				for fd := range 64 {
					if closedFd(unix.Open(fmt.Sprintf("/proc/%d/fd/%d", tid, fd), unix.O_WRONLY|unix.O_NONBLOCK, 0)) == nil {
						return nil
					}
				}
				return errors.New("no descriptor opens")
			})
		},
		"launcher-links": func(a []string) error {
			return anyThread(a[0], func(tid int) error {
				_, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", tid))
				return err
			})
		},
	}
}

// anyThread tries something on every thread of the parent that is older than this process. The one that
// started it is in the same domain, so the domain alone does not protect it. Numbers are given out in turn
// and begin anew after the highest.
func anyThread(highest string, try func(tid int) error) error {
	err, own := errors.New("no thread"), os.Getpid()
	if os.Getenv(runtimeVar) != "" {
		own = os.Getppid() // which is an attacker too
	}
	for tid := host() + 1; tid != own; tid++ {
		if tid > pid(highest) {
			tid = 1
		}
		if err = try(tid); err == nil {
			fmt.Fprintf(os.Stderr, "thread %d of %d, below %d\n", tid, host(), own)
			return nil
		}
	}
	return err
}

func pid(s string) int { n, _ := strconv.Atoi(s); return n }

func closed(f *os.File, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}

func closedFd(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func closedConn(c net.Conn, err error) error {
	if err != nil {
		return err
	}
	return c.Close()
}

func raw(nr, a, b, c uintptr) error {
	if _, _, no := unix.Syscall(nr, a, b, c); no != 0 {
		return no
	}
	return nil
}

// notPermitted and notAbsent turn a call that cannot work here anyway into a probe of the filter: any other
// error shows that the call was reached.
func notPermitted(err error) error {
	if errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

func notAbsent(err error) error {
	if errors.Is(err, unix.ENOSYS) {
		return err
	}
	return nil
}

func ioUring() uintptr { return uintptr(unsafe.Pointer(&make([]byte, 120)[0])) }

func mqueue([]string) error {
	name := []byte("sandbox-test\x00")
	fd, _, no := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
	if no != 0 {
		return no
	}
	return errors.Join(unix.Close(int(fd)), raw(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])), 0, 0))
}

func memfd(a []string) error {
	code, err := os.ReadFile(a[0])
	if err != nil {
		return err
	}
	flags := 0
	if len(a) > 1 {
		flags = pid(a[1])
	}
	fd, err := unix.MemfdCreate("code", flags)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, code); err != nil {
		return err
	}
	_ = unix.Fchmod(fd, 0o755) // one that is sealed was never executable
	return exec.Command(fmt.Sprintf("/proc/self/fd/%d", fd), Arg, "nothing").Run()
}

func chmodAt(a []string) error {
	dir, err := unix.Open(filepath.Dir(a[0]), unix.O_PATH, 0)
	if err != nil {
		return err
	}
	return unix.Fchmodat(dir, filepath.Base(a[0]), 0o640, 0)
}

func fchmod(a []string) error {
	f, err := os.Open(a[0])
	if err != nil {
		return err
	}
	return unix.Fchmod(int(f.Fd()), 0o640)
}

func procChmod(a []string) error {
	fd, err := unix.Open(a[0], unix.O_PATH, 0)
	if err != nil {
		return err
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o640)
}

func creatSetuid(a []string) error {
	unix.Umask(0)
	return closedFd(unix.Open(a[0], unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL, 0o4755))
}

// immutable asks for a file attribute; the one it asks for needs no privilege.
func immutable(a []string) error {
	f, err := os.Open(a[0])
	if err != nil {
		return err
	}
	const noatime, setFlags = 0x80, 0x40086602
	return unix.IoctlSetPointerInt(int(f.Fd()), setFlags, noatime)
}

func vmRead(a []string) error {
	var here, there [8]byte
	address, err := strconv.ParseUint(a[1], 16, 64)
	if err != nil {
		return err
	}
	local := unix.Iovec{Base: &here[0]}
	local.SetLen(len(here))
	_, err = unix.ProcessVMReadv(pid(a[0]), []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(address), Len: len(there)}}, 0)
	return err
}

func getFd(a []string) error {
	fd, err := unix.PidfdOpen(pid(a[0]), 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 1, 0)
	return err
}

// caps works when the process has a capability.
func caps() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	if data[0].Permitted|data[0].Effective|data[1].Permitted|data[1].Effective == 0 {
		return errors.New("no capability")
	}
	return nil
}

// core works when this process could leave a core dump: less than a page is none, and at 1 no program takes it.
func core([]string) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return err
	}
	if l.Max == 1 {
		return errors.New("no core dump")
	}
	return nil
}

// bomb forks a tree of at most a[0] processes, half of them in sessions of their own where that may be, all of which ignore
// SIGTERM, hold the output, and live for an hour.
func bomb(a []string) error {
	left := pid(a[0])
	if left <= 1 {
		time.Sleep(time.Hour)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, part := range []int{left / 2, left - left/2 - 1} {
		if part == 0 {
			continue
		}
		begin := func(session bool) error {
			c := exec.Command(self, Arg, "bomb", strconv.Itoa(part))
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
			return c.Start()
		}
		err := begin(part%2 == 0)
		if errors.Is(err, syscall.EPERM) { // no session may begin
			err = begin(false)
		}
		if err != nil {
			return err
		}
	}
	time.Sleep(time.Hour)
	return nil
}
