package sandbox

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The slots of a run's poll list.
const (
	slotExit = iota
	slotOut
	slotErr
	slotIn
	slotCancel
	slotBroker
	slotWatch
	slots
)

// processes is what a backend knows of the processes of a run. All of it is called on the launcher's thread.
type processes interface {
	// begin starts the command with these standard files. The handle becomes readable when finish is due.
	begin(r *run, files [3]int) (pid, handle int, err error)
	// kill signals every process of the run.
	kill(sig unix.Signal) error
	// list is who belongs to the run and has not ended, by the numbers that this process knows them by.
	list(r *run) []int
	// finish reaps what begin started, says in the outcome how the command ended, and leaves nothing alive.
	finish(r *run) error
}

// run is one command on the launcher's thread, from start to the last byte of output.
type run struct {
	*launcher
	job      *job
	pid      int
	poll     [slots]unix.PollFd
	out      capture
	err      tail
	outcome  Outcome
	begun    time.Time
	deadline time.Time
	phase    phase
	watch    watch
	told     bool // that the run is over
}

// phase says what the next deadline means.
type phase int

const (
	running   phase = iota // the time limit
	asked                  // SIGTERM was sent; SIGKILL follows
	killed                 // SIGKILL was sent; the child is only waited for
	collected              // the child is reaped, nothing is alive; output is read to its end
)

// run starts the command and returns when nothing of it is alive (§6.9).
func (l *launcher) run(j *job) (*Outcome, error) {
	r := &run{launcher: l, job: j, out: capture{cap: j.limits.Output}}
	for i := range r.poll {
		r.poll[i].Fd = -1
	}
	r.begun = j.clock()
	if err := r.start(); err != nil {
		return nil, err
	}
	defer r.release()
	defer r.endCalls()
	defer r.adopted.forget(r.pid)
	defer r.closeWatch()
	r.deadline = r.begun.Add(j.limits.Wall)
	r.watch.begin(r.begun)
	for !r.finished() {
		if err := r.step(); err != nil {
			return nil, errors.Join(err, l.procs.kill(unix.SIGKILL))
		}
	}
	r.outcome.Stdout, r.outcome.Overflow = r.out.kept, r.out.over
	r.outcome.Stderr, r.outcome.StderrSize = r.err.last(), r.err.size
	r.closeWatch()
	r.outcome.said()
	r.endCalls()
	r.outcome.Denied = l.broker.takeDenied()
	r.outcome.Duration = j.clock().Sub(r.begun)
	return &r.outcome, nil
}

// endCalls ends what was answered for the run; a launcher whose broker still works is used no more.
func (r *run) endCalls() {
	if !r.told {
		r.told, r.worn = true, !r.broker.endRun()
	}
}

// start makes the pipes and has the command begun. Every descriptor above 2 is marked close-on-exec before; the
// files are pipes, so nothing has to be opened.
func (r *run) start() error {
	if err := unix.CloseRange(3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	var pipes [3][2]int // each: read end, write end
	for i := range pipes {
		if err := unix.Pipe2(pipes[i][:], unix.O_CLOEXEC); err != nil {
			closeAll(pipes[:i])
			return err
		}
	}
	in, out, fail := pipes[0], pipes[1], pipes[2]
	pidfd := -1
	pid, err := r.adopted.fork(func() (pid int, err error) {
		pid, pidfd, err = r.procs.begin(r, [3]int{in[0], out[1], fail[1]})
		return pid, err
	})
	if err != nil {
		closeAll(pipes[:])
		return err
	}
	closeAll([][2]int{{in[0], out[1]}, {fail[1], -1}})
	r.pid = pid
	r.poll[slotExit] = unix.PollFd{Fd: int32(pidfd), Events: unix.POLLIN}
	r.poll[slotOut] = unix.PollFd{Fd: int32(out[0]), Events: unix.POLLIN}
	r.poll[slotErr] = unix.PollFd{Fd: int32(fail[0]), Events: unix.POLLIN}
	r.poll[slotIn] = unix.PollFd{Fd: int32(in[1]), Events: unix.POLLOUT}
	r.poll[slotCancel] = unix.PollFd{Fd: int32(r.job.cancel), Events: unix.POLLIN}
	if !r.broker.serving() {
		r.poll[slotBroker] = unix.PollFd{Fd: int32(r.listener), Events: unix.POLLIN}
	}
	if len(r.job.stdin) == 0 {
		r.shut(slotIn)
		return nil
	}
	if err := unix.SetNonblock(in[1], true); err != nil {
		r.shut(slotIn)
	}
	return nil
}

func closeAll(pairs [][2]int) {
	for _, pair := range pairs {
		for _, fd := range pair {
			if fd >= 0 {
				_ = unix.Close(fd)
			}
		}
	}
}

// shut closes a slot's descriptor; poll skips it from then on.
func (r *run) shut(slot int) {
	if fd := r.poll[slot].Fd; fd >= 0 {
		_ = unix.Close(int(fd))
		r.poll[slot].Fd = -1
	}
}

// release closes what the run opened.
func (r *run) release() {
	for slot := slotExit; slot <= slotIn; slot++ {
		r.shut(slot)
	}
}

func (r *run) finished() bool {
	return r.phase == collected && r.poll[slotOut].Fd < 0 && r.poll[slotErr].Fd < 0
}

// step waits for the next thing and does it.
func (r *run) step() error {
	now := r.job.clock()
	if !now.Before(r.deadline) {
		return r.late()
	}
	if r.due(now) {
		return r.look(now)
	}
	left := r.until().Sub(now)
	if _, err := unix.Poll(r.poll[:], int((left+time.Millisecond-1)/time.Millisecond)); err != nil {
		if errors.Is(err, unix.EINTR) {
			return nil
		}
		return err
	}
	if r.poll[slotBroker].Revents != 0 {
		r.broker.serve()
		r.poll[slotBroker].Fd = -1
	}
	r.write()
	r.read(slotOut)
	r.read(slotErr)
	if r.out.over && r.phase < killed {
		return r.kill()
	}
	if err := r.found(); err != nil {
		return err
	}
	if r.poll[slotCancel].Revents != 0 && r.phase == running {
		r.poll[slotCancel].Fd = -1
		r.outcome.Canceled = true
		return r.ask()
	}
	if r.poll[slotExit].Revents != 0 {
		return r.collect()
	}
	return nil
}

// late acts on a deadline: the time limit, then the grace (§6.9).
func (r *run) late() error {
	switch r.phase {
	case running:
		r.outcome.TimedOut = true
		return r.ask()
	case asked:
		return r.kill()
	case killed:
		return errors.New("the command could not be killed")
	}
	r.shut(slotOut)
	r.shut(slotErr)
	return nil
}

func (r *run) ask() error {
	err := r.procs.kill(unix.SIGTERM)
	r.phase, r.deadline = asked, r.job.clock().Add(r.job.limits.Grace) // a walk takes time
	return err
}

func (r *run) kill() error {
	err := r.procs.kill(unix.SIGKILL)
	r.phase, r.deadline = killed, r.job.clock().Add(drainTime)
	return err
}

// read takes what a pipe holds.
func (r *run) read(slot int) {
	if r.poll[slot].Fd < 0 || r.poll[slot].Revents == 0 {
		return
	}
	if r.buffer == nil {
		r.buffer = make([]byte, 64<<10)
	}
	n, err := unix.Read(int(r.poll[slot].Fd), r.buffer)
	switch {
	case errors.Is(err, unix.EINTR):
	case err != nil || n == 0:
		r.shut(slot)
	case slot == slotOut:
		_, _ = r.out.Write(r.buffer[:n])
	default:
		_, _ = r.err.Write(r.buffer[:n])
	}
}

// write feeds stdin; a child that closed its end gets no more.
func (r *run) write() {
	if r.poll[slotIn].Fd < 0 || r.poll[slotIn].Revents == 0 {
		return
	}
	n, err := unix.Write(int(r.poll[slotIn].Fd), r.job.stdin)
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		return
	}
	if err != nil || n == len(r.job.stdin) {
		r.shut(slotIn)
		return
	}
	r.job.stdin = r.job.stdin[n:]
}

// collect has the tree finished (§6.9); what is left is output.
func (r *run) collect() error {
	if err := r.procs.finish(r); err != nil {
		return err
	}
	r.shut(slotExit)
	r.shut(slotIn)
	r.phase, r.deadline = collected, r.job.clock().Add(drainTime)
	return nil
}

// ended fills in how the direct child ended and which limit that was (§10.4).
func (o *Outcome) ended(status unix.WaitStatus, usage unix.Rusage, limits Limits) {
	o.Exit = status.ExitStatus()
	if !status.Signaled() {
		return
	}
	o.Exit, o.Signal = -1, unix.SignalName(status.Signal())
	used := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	switch {
	case o.Limit != "": // the watch ended it
	case status.Signal() == unix.SIGXFSZ:
		o.Limit = "file_size"
	case status.Signal() == unix.SIGXCPU, status.Signal() == unix.SIGKILL && limits.CPU > 0 && used >= limits.CPU:
		o.Limit = "cpu"
	}
}
