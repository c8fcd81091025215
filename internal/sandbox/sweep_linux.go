package sandbox

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// scoped are the processes of a launcher whose domain keeps signals inside.
type scoped struct{ *launcher }

// begin forks from this thread, so that the child is born confined.
func (t scoped) begin(r *run, files [3]int) (pid, handle int, err error) {
	child, err := newBirth(r.job, files)
	if err != nil {
		return 0, -1, err
	}
	return child.start()
}

func (t scoped) kill(sig unix.Signal) error { return t.domain.kill(sig) }

func (t scoped) list(r *run) []int {
	pids := []int{r.pid}
	for _, pid := range r.candidates() {
		if fd := t.domain.running(pid); fd >= 0 {
			_ = unix.Close(fd)
			pids = append(pids, pid)
		}
	}
	return pids
}

// finish reaps the direct child and ends everything that it left behind (§6.9).
func (t scoped) finish(r *run) error {
	status, usage, err := reap(r.pid)
	if err != nil {
		return err
	}
	r.outcome.ended(status, usage, r.job.limits)
	return r.sweep()
}

// reap waits for a child that has ended.
func reap(pid int) (status unix.WaitStatus, usage unix.Rusage, err error) {
	for {
		if _, err = unix.Wait4(pid, &status, 0, &usage); !errors.Is(err, unix.EINTR) {
			return status, usage, os.NewSyscallError("wait4", err)
		}
	}
}

// sweep kills what is left in the domain after the direct child was reaped, counts it, and waits until it is
// dead. The kill needs no list; the list is for the count and for the waiting.
func (r *run) sweep() error {
	until := r.job.clock().Add(drainTime)
	for {
		left := r.members()
		r.outcome.Report.Killed += len(left)
		if err := r.domain.kill(unix.SIGKILL); err != nil || len(left) == 0 {
			return err
		}
		r.await(left, until)
		if !r.job.clock().Before(until) {
			return nil
		}
	}
}

// candidates are the numbers that a process of the run may have. Numbers are given out in turn, so that those after
// the first process's will do for a run that is young: no machine gives out the least that there are, 32768, so fast.
// Later they may have begun anew and passed the first one, which hides whoever has a higher one.
func (r *run) candidates() []int {
	const young = 50 * time.Millisecond
	return r.pids.since(r.pid, r.job.clock().Sub(r.begun) > young)
}

// members opens a handle to every running process of the domain.
func (r *run) members() []unix.PollFd {
	var found []unix.PollFd
	for _, pid := range r.candidates() {
		if fd := r.domain.running(pid); fd >= 0 {
			found = append(found, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	return found
}

// await waits until the processes have ended and closes the handles.
func (r *run) await(left []unix.PollFd, until time.Time) {
	for i := range left {
		for one := left[i : i+1]; ; {
			wait := until.Sub(r.job.clock())
			if n, err := unix.Poll(one, int(max(wait/time.Millisecond, 0))); n > 0 || wait <= 0 || (err != nil && err != unix.EINTR) {
				break
			}
		}
		// It is a child of this process only when a native run makes it the subreaper.
		_ = unix.Waitid(unix.P_PIDFD, int(left[i].Fd), nil, unix.WEXITED|unix.WNOHANG, nil)
		_ = unix.Close(int(left[i].Fd))
	}
}

// pidCounter knows which processes may have begun after another one. Numbers are given out in turn, so they
// lie between that one's and the newest, the last field of /proc/loadavg. The file is opened before any
// thread is confined, for a confined one could not.
type pidCounter struct {
	once sync.Once
	fd   int
}

func (c *pidCounter) open() {
	c.once.Do(func() {
		fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			fd = -1
		}
		c.fd = fd
	})
}

// widest is the span of numbers that is looked at one by one.
const widest = 1 << 14

// since lists the numbers after pid, or all processes of the machine when the numbers began anew since then, or may
// have.
func (c *pidCounter) since(pid int, anew bool) []int {
	last := c.last()
	if anew || last < pid || last-pid > widest {
		all := make(chan []int)
		go func() { all <- procs.All() }() // another thread, for this one cannot read /proc
		return <-all
	}
	list := make([]int, 0, last-pid)
	for n := pid + 1; n <= last; n++ {
		list = append(list, n)
	}
	return list
}

// last is the newest number, 0 when there is no /proc.
func (c *pidCounter) last() int {
	var buf [128]byte
	n, err := unix.Pread(c.fd, buf[:], 0)
	if err != nil || n <= 0 {
		return 0
	}
	fields := bytes.Fields(buf[:n])
	last, err := strconv.Atoi(string(fields[len(fields)-1]))
	if err != nil {
		return 0
	}
	return last
}
