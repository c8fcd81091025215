package sandbox_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox/sandboxtest"
)

// familyArg turns the test binary into a program that signals its own processes, and others.
const familyArg = "sandbox-family"

// family runs one verb when the process was started for it: exit 0 when everything worked, 1 with the reason on
// stderr else.
func family() {
	if len(os.Args) < 3 || os.Args[1] != familyArg {
		return
	}
	verbs := map[string]func([]string) error{
		"child": signalChild, "group": signalGroup, "own": signalOwn, "own-group": signalOwnGroup, "all": signalAll,
		"absent": signalAbsent, "reach": reach, "storm": storm, "forks": interrupted,
		"chain": func([]string) error { return chain(unix.SYS_SETSID) }, "group-chain": func([]string) error { return chain(unix.SYS_SETPGID) },
		"fork-chain": func([]string) error { return chain(unix.SYS_GETPID) },
	}
	maps.Copy(verbs, headlessVerbs())
	if err := verbs[os.Args[2]](os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
	syscall.Exit(0)
}

// sleeper starts a process that sleeps, and tells when it does.
func sleeper(attr *syscall.SysProcAttr) (*exec.Cmd, error) {
	c := exec.Command("/proc/self/exe", sandboxtest.HelperArg, "sleep")
	if self, err := os.Executable(); err == nil {
		c.Path = self
	}
	c.SysProcAttr = attr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	_, err = out.Read(make([]byte, 16))
	return c, err
}

// ways are all calls that signal one process.
func ways() map[string]func(pid int, sig syscall.Signal) error {
	queue := func(nr, a, b uintptr, sig syscall.Signal) error {
		info := unix.Siginfo{Signo: int32(sig), Code: -1}
		var no unix.Errno
		if nr == unix.SYS_RT_SIGQUEUEINFO {
			_, _, no = unix.Syscall(nr, a, uintptr(sig), uintptr(unsafe.Pointer(&info)))
		} else {
			_, _, no = unix.Syscall6(nr, a, b, uintptr(sig), uintptr(unsafe.Pointer(&info)), 0, 0)
		}
		if no != 0 {
			return no
		}
		return nil
	}
	return map[string]func(int, syscall.Signal) error{
		"kill":   func(pid int, sig syscall.Signal) error { return unix.Kill(pid, sig) },
		"tgkill": func(pid int, sig syscall.Signal) error { return unix.Tgkill(pid, pid, sig) },
		"tkill": func(pid int, sig syscall.Signal) error {
			if _, _, no := unix.Syscall(unix.SYS_TKILL, uintptr(pid), uintptr(sig), 0); no != 0 {
				return no
			}
			return nil
		},
		"rt_sigqueueinfo": func(pid int, sig syscall.Signal) error {
			return queue(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), 0, sig)
		},
		"rt_tgsigqueueinfo": func(pid int, sig syscall.Signal) error {
			return queue(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(pid), sig)
		},
		"pidfd_send_signal": func(pid int, sig syscall.Signal) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, sig, nil, 0)
		},
	}
}

// signalChild ends a child in every way.
func signalChild([]string) error {
	for name, send := range ways() {
		c, err := sleeper(nil)
		if err != nil {
			return err
		}
		for _, sig := range []syscall.Signal{0, unix.SIGTERM} {
			if err := send(c.Process.Pid, sig); err != nil {
				return fmt.Errorf("%s %d: %w", name, sig, err)
			}
		}
		if err := ended(c, unix.SIGTERM); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// ended waits for a child that a signal ended.
func ended(c *exec.Cmd, sig syscall.Signal) error {
	_ = c.Wait() // how it ended stands in ProcessState
	if status := c.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != sig {
		return fmt.Errorf("the child ended with %v", c.ProcessState)
	}
	return nil
}

// signalGroup ends a group of two, the leader of which is gone already.
func signalGroup([]string) error {
	first, err := sleeper(&syscall.SysProcAttr{Setpgid: true})
	if err != nil {
		return err
	}
	second, err := sleeper(&syscall.SysProcAttr{Setpgid: true, Pgid: first.Process.Pid})
	if err != nil {
		return err
	}
	if err := first.Process.Kill(); err != nil {
		return err
	}
	if err := ended(first, unix.SIGKILL); err != nil {
		return err
	}
	if err := unix.Kill(-first.Process.Pid, unix.SIGTERM); err != nil {
		return err
	}
	return ended(second, unix.SIGTERM)
}

// signalOwn signals this process, and a thread of it.
func signalOwn([]string) error {
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGUSR1)
	tid := make(chan int)
	go func() {
		runtime.LockOSThread()
		tid <- unix.Gettid()
		time.Sleep(time.Minute)
	}()
	for name, send := range ways() {
		if err := send(os.Getpid(), unix.SIGUSR1); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		<-got
	}
	thread := <-tid
	if err := unix.Tgkill(os.Getpid(), thread, unix.SIGUSR1); err != nil {
		return err
	}
	<-got
	return ways()["tkill"](thread, 0)
}

// signalOwnGroup signals the group of this process, which it is told about itself too.
func signalOwnGroup([]string) error {
	c, err := sleeper(nil)
	if err != nil {
		return err
	}
	got := make(chan os.Signal, 1)
	signal.Notify(got, unix.SIGTERM)
	if err := unix.Kill(0, unix.SIGTERM); err != nil {
		return err
	}
	<-got
	return ended(c, unix.SIGTERM)
}

// signalAll ends everything that may be signalled, which is this program's own processes: one of them in a session
// of its own, and one that lost its parent.
func signalAll([]string) error {
	near, err := sleeper(nil)
	if err != nil {
		return err
	}
	away, err := sleeper(&syscall.SysProcAttr{Setsid: true})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	orphan := exec.Command(self, sandboxtest.HelperArg, "leave", "away")
	out, err := orphan.StdoutPipe()
	if err != nil {
		return err
	}
	if err := orphan.Start(); err != nil {
		return err
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		return err
	}
	if err := unix.Kill(-1, unix.SIGKILL); err != nil {
		return err
	}
	_ = orphan.Process.Release()
	if n, err := out.Read(make([]byte, 16)); n > 0 || err == nil { // the pipe ends when its last holder is dead
		return errors.New("the orphan lives")
	}
	return errors.Join(ended(near, unix.SIGKILL), ended(away, unix.SIGKILL))
}

// signalAbsent finds that nobody is there.
func signalAbsent([]string) error {
	c, err := sleeper(&syscall.SysProcAttr{Setpgid: true})
	if err != nil {
		return err
	}
	gone := c.Process.Pid
	fd, err := unix.PidfdOpen(gone, 0)
	if err != nil {
		return err
	}
	if err := c.Process.Kill(); err != nil {
		return err
	}
	if err := ended(c, unix.SIGKILL); err != nil {
		return err
	}
	for _, err := range []error{unix.Kill(gone, 0), unix.Kill(-gone, 0), unix.PidfdSendSignal(fd, 0, nil, 0), unix.Tgkill(gone, gone, 0)} {
		if !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("a process that is gone: %v", err)
		}
	}
	if err := unix.Kill(os.Getpid(), 65); !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("signal 65: %v", err)
	}
	return nil
}

// reach tries to signal a stranger in every way, and its group; it works when one does.
func reach(a []string) error {
	pid, err := strconv.Atoi(a[0])
	if err != nil {
		return err
	}
	var all error
	for name, send := range ways() {
		err := send(pid, 0)
		if err == nil {
			return nil
		}
		all = errors.Join(all, fmt.Errorf("%s: %w", name, err))
	}
	err = unix.Kill(-pid, 0)
	if err == nil {
		return nil
	}
	return errors.Join(all, fmt.Errorf("its group: %w", err))
}

// chain begins its like and ends, for minutes, and never executes anything: whoever looks for it finds one that is
// gone. Each flees first by a call, to a session or a group of its own, or not at all.
func chain(flee uintptr) error {
	for range 1 << 18 {
		pid, _, no := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid != 0 || no != 0 {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		syscall.RawSyscall(flee, 0, 0, 0)
	}
	syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	return nil
}

// storm begins so many chains of a kind, and ends while they go on, or stays, and resists SIGTERM as they do.
func storm(a []string) error {
	signal.Ignore(unix.SIGTERM, unix.SIGCHLD)
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for range n {
		if err := exec.Command(self, familyArg, a[2], a[1]).Start(); err != nil {
			return err
		}
	}
	time.Sleep(300 * time.Millisecond)
	if a[3] == "stay" {
		time.Sleep(time.Hour)
	}
	return nil
}

// interrupted begins processes while a timer and their own ends interrupt it, with handlers that restart nothing.
func interrupted([]string) error {
	signal.Notify(make(chan os.Signal, 1), unix.SIGALRM, unix.SIGCHLD)
	for _, sig := range []syscall.Signal{unix.SIGALRM, unix.SIGCHLD} {
		var action [8]uint64 // the kernel's sigaction: handler, flags, and what is left as it is
		if _, _, no := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0); no != 0 {
			return no
		}
		const restart = 0x10000000
		if action[1]&restart == 0 {
			return errors.New("void: the handler restarts nothing anyway")
		}
		action[1] &^= restart
		if _, _, no := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0); no != 0 {
			return no
		}
	}
	tick := unix.Timeval{Usec: 1000}
	if _, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Interval: tick, Value: tick}); err != nil {
		return err
	}
	for n := range 2000 {
		pid, _, no := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if no != 0 {
			return fmt.Errorf("fork %d: %w", n, no)
		}
		if pid == 0 {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		for _, err := unix.Wait4(int(pid), nil, 0, nil); errors.Is(err, unix.EINTR); {
			_, err = unix.Wait4(int(pid), nil, 0, nil)
		}
	}
	return nil
}
