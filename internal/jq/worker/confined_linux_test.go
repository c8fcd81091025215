package worker

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// attempt does one thing from inside a worker.
func attempt(what string) any {
	switch what {
	case "pid":
		return os.Getpid()
	case "open":
		_, err := os.ReadFile("/proc/self/environ")
		return err
	case "create":
		return os.WriteFile("/tmp/hcpx-worker-probe", nil, 0o600)
	case "connect":
		_, err := net.Dial("tcp", "127.0.0.1:1")
		return err
	case "exec":
		return exec.Command("/bin/true").Run()
	case "fork":
		_, _, no := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		return no
	case "signal":
		return unix.Kill(os.Getppid(), 0)
	case "signal a thread":
		return unix.Tgkill(os.Getppid(), os.Getppid(), 0)
	case "trace":
		return unix.PtraceAttach(os.Getppid())
	case "limit":
		return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	case "descriptors":
		var open []int
		for fd := range 64 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
				open = append(open, fd)
			}
		}
		return open
	case "environment":
		return os.Environ()
	}
	return "unknown"
}

const asParent = "HCPX_TEST_PARENT"

// parent has a worker, tells its number, and waits to be killed.
func parent() {
	c := New(os.Executable)
	pid, err := c.Eval(context.Background(), probe+"pid", nil)
	if err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString(pid.Text + "\n")
	select {}
}

// §3.5: a worker does not outlive whoever started it.
func Test_3_5_TheWorkerEndsWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := exec.Command(self)
	p.Env = append(os.Environ(), asParent+"=1")
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(handle)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 10_000); n != 1 {
		t.Errorf("it lives: %v", err)
	}
}
