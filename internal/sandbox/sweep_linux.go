package sandbox

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

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

// pidSpace is above every pid that the kernel gives out.
const pidSpace = 1 << 22

// members opens a handle to every running process of the domain. All of them are younger than the direct
// child and numbers are given out in turn, so the newest number of the machine bounds the search.
func (r *run) members() []unix.PollFd {
	last := r.pids.last()
	var found []unix.PollFd
	look := func(from, to int) {
		for pid := from; pid <= to; pid++ {
			if fd := r.domain.running(pid); fd >= 0 {
				found = append(found, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
		}
	}
	if last < r.pid {
		look(r.pid+1, pidSpace)
		look(2, last)
		return found
	}
	look(r.pid+1, last)
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
		_ = unix.Close(int(left[i].Fd))
	}
}

// pidCounter reads the newest pid from the last field of /proc/loadavg. It is opened before any thread is
// confined, for a confined one could not; without /proc the answer is 0, and members looks everywhere.
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
