package sandbox

import (
	"errors"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// service carries out calls of one kind for the child (§10.2). The filter hands a call over, the broker finds the
// service by the call's name, the service says what the child gets. Its contract:
//
//   - calls names the calls of the table that end here; no two services of a broker name the same.
//   - act decides one call. Where blocks is false it is called by the broker's only goroutine, and must not wait for
//     anything; where blocks is true it has a goroutine of its own (maxBlocked at most, what comes above is answered
//     EAGAIN) and returns soon once c.over is closed. It may be called for several calls at once then.
//   - The arguments are words that the child cannot change any more. What they point at, and everything that is
//     reached by the child's number, can: it is copied once, and counts only if c.waits says so afterwards.
//     Whoever lets the kernel proceed may have checked nothing but the words themselves.
//   - end is called when a run is over: none of its processes is alive, and no act is going on. Nothing that
//     belonged to the run may be left. It is not called for a run that asked the broker nothing.
//   - close is called once, when nothing has the filter any more, or when there will be no run.
type service interface {
	calls() []string
	blocks() bool
	act(c *call) answer
	end()
	close()
}

// answer is what the child gets for a call. The zero answer is success with value 0.
type answer struct {
	value int64
	errno unix.Errno
	kind  answerKind
}

type answerKind int

const (
	replies     answerKind = iota
	proceeds               // the kernel carries the call out as if there were no broker
	stays                  // no answer: the caller sleeps until it is killed
	lends                  // value is a descriptor of this process; the child gets a copy and its number, and it is closed here
	lendsOnExec            // the same, closed when the child executes a program
)

func fails(no unix.Errno) answer { return answer{errno: no} }

// Numbers of the notification interface that the module golang.org/x/sys does not have.
const (
	notifyValid = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	notifyAddFd = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD
)

// maxBlocked bounds how many calls wait at once, and endTime how long a run waits for those that are being answered
// when its processes are dead: each has been told, and none has anything left to wait for.
const (
	maxBlocked = 256
	endTime    = time.Second
)

// addition is struct seccomp_notif_addfd.
type addition struct {
	id         uint64
	flags      uint32
	src        uint32
	new        uint32
	descriptor uint32 // its flags
}

// broker answers the calls that a filter hands over, by its services. Its goroutine begins at the first call:
// most runs have none.
type broker struct {
	listener int // -1 = the filter hands nothing over
	services []service
	slots    chan struct{} // taken by calls that wait

	// turn is held for reading while calls are acted on, and for writing when a run is over.
	turn sync.RWMutex

	mu     sync.Mutex
	begun  bool
	ended  chan struct{} // closed when the run is over
	denied refusals
}

func newBroker(listener int, services ...service) *broker {
	return &broker{listener: listener, services: services, ended: make(chan struct{})}
}

// serving says that nobody has to watch the listener for the first call.
func (b *broker) serving() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun || b.listener < 0
}

// serve answers from an own goroutine, begun at the first call, until no process has the filter any more.
func (b *broker) serve() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		b.begun, b.slots = true, make(chan struct{}, maxBlocked)
		go b.dispatch()
	}
}

// endRun tells the services that the run is over, once the calls at work have returned. False is a broker that may
// not be used again: a call did not return in time.
func (b *broker) endRun() bool {
	b.mu.Lock()
	begun := b.begun
	b.mu.Unlock()
	if !begun {
		b.over(true)
		return true
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.endCalls()
	}()
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// endCalls waits as long as it takes.
func (b *broker) endCalls() {
	b.over(true)
	b.turn.Lock()
	defer b.turn.Unlock()
	for _, s := range b.services {
		s.end()
	}
}

// release closes the listener of a launcher whose thread ends; a broker at work does it itself.
func (b *broker) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun {
		return nil
	}
	b.begun = true
	return b.close()
}

func (b *broker) close() error {
	for _, s := range b.services {
		s.close()
	}
	if b.listener < 0 {
		return nil
	}
	return unix.Close(b.listener)
}

// deny keeps what was refused for the report of the run.
func (b *broker) deny(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied.add(what)
}

func (b *broker) takeDenied() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.denied.report()
	b.denied = refusals{}
	return taken
}

// over is closed when the run that goes on now is over, which ends says.
func (b *broker) over(ends bool) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.ended
	if ends {
		b.ended = make(chan struct{})
		close(now)
	}
	return now
}

// dispatch is the life of the broker's goroutine.
func (b *broker) dispatch() {
	defer func() {
		b.endCalls()
		_ = b.close()
	}()
	route := b.routes()
	poll := []unix.PollFd{{Fd: int32(b.listener), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if poll[0].Revents&unix.POLLIN != 0 {
			b.receive(route)
		} else if poll[0].Revents != 0 {
			return // the last process is gone
		}
	}
}

// route is where a call goes.
type route struct {
	name    string
	service service
}

// routes finds the service of every call by its number on this machine.
func (b *broker) routes() map[int32]route {
	routes := map[int32]route{}
	machine, ok := hostArch()
	for _, s := range b.services {
		for _, name := range s.calls() {
			for _, r := range syscallTable() {
				if n := r.number(machine); ok && r.name == name && n >= 0 {
					routes[int32(n)] = route{name, s}
				}
			}
		}
	}
	return routes
}

// receive takes one call and has it answered. The lock makes that the call, if it is still there, belongs to
// the run that goes on.
func (b *broker) receive(routes map[int32]route) {
	b.turn.RLock()
	var n procs.Notice
	if procs.Control(b.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
		b.turn.RUnlock()
		return // it was killed meanwhile
	}
	r, known := routes[n.NR]
	c := &call{Notice: n, name: r.name, broker: b, over: b.over(false)}
	switch {
	case !known:
		b.reply(n.ID, fails(unix.EPERM))
	case r.service.blocks():
		select {
		case b.slots <- struct{}{}:
			go func() {
				defer b.turn.RUnlock()
				defer func() { <-b.slots }()
				b.reply(n.ID, guard(r.service, c))
			}()
			return
		default:
			b.reply(n.ID, fails(unix.EAGAIN))
		}
	default:
		b.reply(n.ID, guard(r.service, c))
	}
	b.turn.RUnlock()
}

// guard turns a panic of a service into a refusal: fail closed (§6.3).
func guard(s service, c *call) (a answer) {
	defer func() {
		if recover() != nil {
			c.deny("a call of " + c.name)
			a = fails(unix.EPERM)
		}
	}()
	return s.act(c)
}

// reply sends an answer. It fails only when the caller is dead.
func (b *broker) reply(id uint64, a answer) {
	r := procs.Reply{ID: id}
	switch {
	case a.kind == stays:
		return
	case a.errno != 0:
		r.Errno = -int32(a.errno)
	case a.kind == proceeds:
		r.Flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	case a.kind == lends, a.kind == lendsOnExec:
		add := addition{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, src: uint32(a.value)}
		if a.kind == lendsOnExec {
			add.descriptor = unix.O_CLOEXEC
		}
		no := procs.Control(b.listener, notifyAddFd, unsafe.Pointer(&add))
		_ = unix.Close(int(a.value))
		if no == 0 {
			return
		}
		r.Errno = -int32(no)
	default:
		r.Val = a.value
	}
	_ = procs.Control(b.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}
