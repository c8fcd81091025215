package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// watch looks now and then at the processes of a run that lives longer than a moment, and finds what is over its
// limits (§10.4). The launcher's thread knows who belongs to the run; it may read no /proc, so a goroutine reads
// what they use. A run that is over before the first look costs nothing.
type watch struct {
	next  time.Time // of the next look
	pause time.Duration
	rest  time.Time    // before which nothing is asked
	busy  bool         // the last question is not answered yet
	ask   chan []int   // nil before the first look
	tell  chan finding // an answer for each question, and a last one at the end
	event int          // readable when there is an answer
}

// finding is what a look came to.
type finding struct {
	limit   string // that is exceeded, "" = none
	watched string
	took    time.Duration
}

func (w *watch) begin(now time.Time) { w.next, w.pause = now.Add(firstLook), firstLook }

// due says whether the tree is to be looked at; until is when something is to be done next.
func (r *run) due(now time.Time) bool { return r.phase < killed && !now.Before(r.watch.next) }

func (r *run) until() time.Time {
	if r.phase < killed && r.watch.next.Before(r.deadline) {
		return r.watch.next
	}
	return r.deadline
}

// look counts the tree, and has the rest found out. The larger the tree, the sooner the next look: what multiplies
// is to be met early.
func (r *run) look(now time.Time) error {
	w := &r.watch
	pids := r.procs.list(r)
	if len(pids) > r.job.limits.Processes {
		return r.exceed("processes")
	}
	end := r.job.clock()
	w.next, w.pause = end.Add(w.pause), min(2*w.pause, longestPause)
	if len(pids) > r.job.limits.Processes/many {
		w.next = end.Add(max(firstLook, 2*end.Sub(now)))
	}
	if w.busy || now.Before(w.rest) {
		return nil
	}
	if w.ask == nil {
		if err := r.openWatch(); err != nil {
			return nil // no descriptor is free just now: the next look tries again
		}
	}
	w.busy = true
	w.ask <- pids
	return nil
}

func (r *run) openWatch() error {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return err
	}
	w := &r.watch
	w.event, w.ask, w.tell = event, make(chan []int, 1), make(chan finding, 2)
	r.poll[slotWatch] = unix.PollFd{Fd: int32(event), Events: unix.POLLIN}
	e := &eye{limits: r.job.limits, groups: r.groups, clock: r.job.clock}
	go e.serve(w.ask, w.tell, event)
	return nil
}

// found takes the answer to a look.
func (r *run) found() error {
	if r.poll[slotWatch].Revents == 0 {
		return nil
	}
	var count [8]byte
	_, _ = unix.Read(r.watch.event, count[:]) // it only makes the descriptor unreadable
	f := <-r.watch.tell
	r.watch.busy = false
	r.outcome.Report.Watched = f.watched
	r.watch.rest = r.job.clock().Add(10 * f.took) // a tenth of the time at most
	if f.limit != "" && r.phase < killed {
		return r.exceed(f.limit)
	}
	return nil
}

// exceed ends the whole tree for a limit.
func (r *run) exceed(limit string) error {
	r.outcome.Limit = limit
	return r.kill()
}

// closeWatch ends the watch. A cgroup may know of a limit that no look saw: it counts for a run that failed.
func (r *run) closeWatch() {
	w := &r.watch
	if w.ask == nil {
		return
	}
	close(w.ask)
	var last finding
	for f := range w.tell {
		last = f
	}
	w.ask = nil
	r.shut(slotWatch)
	r.outcome.Report.Watched = last.watched
	if o := &r.outcome; o.Limit == "" && o.Exit != 0 && !o.TimedOut && !o.Canceled && !o.Overflow {
		o.Limit = last.limit
	}
}

// eye finds out what processes use, on threads that are not confined.
type eye struct {
	limits Limits
	groups func() *groups
	clock  clock
	group  *group
	tries  int  // to make the group
	partly bool // not everything could be moved into it
}

func (e *eye) serve(ask chan []int, tell chan finding, event int) {
	for pids := range ask {
		begin := e.clock()
		f := finding{limit: e.look(pids)}
		f.watched, f.took = e.watched(), e.clock().Sub(begin)
		tell <- f
		_, _ = unix.Write(event, []byte{7: 1}) // any non-zero count; fails only when it is set already
	}
	f := finding{watched: e.watched()}
	if e.group != nil {
		f.limit = e.group.hit()
		e.group.end()
	}
	tell <- f
	close(tell)
}

func (e *eye) watched() string {
	if e.group != nil && !e.partly {
		return watchedCgroup
	}
	return watchedSampled
}

// look names the limit that the processes exceed together. A group counts them from within; they are looked at
// beside it, for it does not know what was before it.
func (e *eye) look(pids []int) string {
	if limit := e.grouped(pids); limit != "" {
		return limit
	}
	var all usage
	for _, pid := range pids {
		all.add(usageOf(pid))
	}
	switch {
	case all.threads > e.limits.Processes:
		return "processes"
	case all.memory > e.limits.Memory && exactly(pids) > e.limits.Memory:
		return "memory"
	}
	return ""
}

// grouped moves the processes into the run's group, where there can be one, and asks it. Making one is tried three
// times at most; one that cannot be moved is watched all the same.
func (e *eye) grouped(pids []int) string {
	const most = 3
	if e.group == nil && e.tries < most {
		e.tries++
		e.group, _ = e.groups().make(e.limits)
	}
	if e.group == nil {
		return ""
	}
	e.partly = e.group.take(pids) != nil
	return e.group.hit()
}

// usage is what processes take from the machine.
type usage struct {
	memory  uint64 // bytes that are nobody's file, in memory or swapped out
	threads int
}

func (u *usage) add(o usage) {
	u.memory += o.memory
	u.threads += o.threads
}

// usageOf reads status, which is cheap and counts memory that processes share in each of them.
func usageOf(pid int) usage {
	var u usage
	ofThread(pid, "status", func(text []byte) bool {
		u = usage{
			memory:  1024 * total(text, "\nRssAnon:", "\nRssShmem:", "\nVmSwap:"),
			threads: int(procs.Number(text, "\nThreads:")),
		}
		return bytes.Contains(text, []byte("\nRssAnon:"))
	})
	return u
}

// exactly is the memory of all, where what they share counts once. The kernel walks every page for it, so only those
// are asked who seem to be over the limit. One that cannot be asked counts as it seems.
func exactly(pids []int) uint64 {
	var sum uint64
	for _, pid := range pids {
		var memory uint64
		if !ofThread(pid, "smaps_rollup", func(text []byte) bool {
			memory = 1024 * total(text, "\nPss_Anon:", "\nPss_Shmem:", "\nSwapPss:")
			return bytes.Contains(text, []byte("\nPss_Anon:"))
		}) {
			memory = usageOf(pid).memory
		}
		sum += memory
	}
	return sum
}

// ofThread reads a file of /proc that tells of a process's memory, and says whether it did. A thread that has ended
// has none: where the first one has, another tells for the process.
func ofThread(pid int, name string, tells func(text []byte) bool) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	if text, err := os.ReadFile(dir + "/" + name); err == nil && tells(text) {
		return true
	}
	threads, err := os.ReadDir(dir + "/task")
	if err != nil || len(threads) < 2 {
		return false
	}
	for _, thread := range threads {
		if text, err := os.ReadFile(dir + "/task/" + thread.Name() + "/" + name); err == nil && tells(text) {
			return true
		}
	}
	return false
}

// total is the sum of the numbers behind the names.
func total(text []byte, names ...string) (n uint64) {
	for _, name := range names {
		n += uint64(procs.Number(text, name))
	}
	return n
}
