package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
)

// launcher is a confined thread with its private directory. It serves one run at a time, all of the same
// policy, and its thread dies with it.
type launcher struct {
	key      string // of the policy; "" = never reused
	private  private
	rules    chan ruleset // what the thread shall enter; closed when there will be none
	ready    chan error   // that it did
	jobs     chan *job
	listener int
	broker   *broker
	domain   domain // of use only on the thread
	procs    processes
	secret   [2]uint32
	pids     *pidCounter
	adopted  *adoption
	groups   func() *groups
	buffer   []byte
	worn     bool // it may not be used again: something of a run was left at work
}

// job is one run handed to the thread.
type job struct {
	path   string
	argv   []string
	env    []string
	dir    string
	stdin  []byte
	limits Limits
	clock  clock
	cancel int // an event descriptor; readable = stop
	done   chan verdictOf
}

// verdictOf is what a job came to; err means that nothing was started.
type verdictOf struct {
	outcome *Outcome
	err     error
}

// newLauncher begins a new thread, which strips itself while the caller builds the jail.
func newLauncher(f filter, c *confiner) *launcher {
	l := &launcher{secret: newSecret(), rules: make(chan ruleset), ready: make(chan error, 1), jobs: make(chan *job),
		pids: &c.pids, adopted: &c.system.adopted, groups: c.groups, listener: -1}
	l.procs = c.processes(l)
	mode := c.system.kernel().posture("none").signals // no network mode changes them
	onOwnThread(func() {
		var err error
		l.listener, err = strip(f, l.secret)
		if rules, ok := <-l.rules; ok {
			if err == nil {
				l.domain, err = rules.enter(mode)
			}
			l.ready <- err
			if err == nil {
				l.serve()
			}
			return
		}
		l.ready <- err
	})
	return l
}

func newSecret() [2]uint32 {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails; it ends the process instead
	random[0] |= 1              // 0 is what everybody shows
	return [2]uint32{binary.NativeEndian.Uint32(random[:4]), binary.NativeEndian.Uint32(random[4:])}
}

// confine gives the thread its ruleset and waits until it has entered it. The services answer what the filter
// hands over.
func (l *launcher) confine(rules ruleset, services ...service) error {
	l.rules <- rules
	err := <-l.ready
	if again := unix.Close(rules.fd); err == nil {
		err = again
	}
	if err != nil {
		return l.closeListener(err)
	}
	l.broker = newBroker(l.listener, services...)
	return nil
}

// abandon ends a thread that was given no ruleset.
func (l *launcher) abandon(err error) error {
	close(l.rules)
	<-l.ready
	return l.closeListener(err)
}

func (l *launcher) closeListener(err error) error {
	if l.listener < 0 {
		return err
	}
	return closing(l.listener, err)
}

// serve runs jobs until the channel is closed. It is the whole life of the thread.
func (l *launcher) serve() {
	for j := range l.jobs {
		outcome, err := l.guarded(j)
		j.done <- verdictOf{outcome, err}
	}
}

// guarded turns a panic into an error after the tree is dead: fail closed (§6.3).
func (l *launcher) guarded(j *job) (outcome *Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			outcome, err = nil, fmt.Errorf("the launcher failed: %v (%v)", p, l.procs.kill(unix.SIGKILL))
		}
	}()
	return l.run(j)
}

// stop ends the thread. The broker, where it was needed, ends when nothing is left in the domain.
func (l *launcher) stop() error {
	close(l.jobs)
	return l.broker.release()
}

// confiner is the Linux backend: it checks Specs and keeps launchers.
type confiner struct {
	system  *System
	base    func() []grant
	place   func() place // of the private directories
	full    func() []grant
	hosts   func() []grant
	hidden  func() error
	filters map[string]func() (filter, error)
	pids    pidCounter
	groups  func() *groups

	mu   sync.Mutex
	idle []*launcher
}

func (c *confiner) init(s *System) {
	c.system = s
	c.base = sync.OnceValue(func() []grant { return present(basePaths()) })
	c.full = sync.OnceValue(func() []grant { return present(fullPaths()) })
	c.hosts = sync.OnceValue(func() []grant { return present(hostsPaths()) })
	c.place = sync.OnceValue(func() place { return placeOf(s.options.Scratch) })
	c.hidden = sync.OnceValue(conceal)
	c.groups = sync.OnceValue(hostGroups)
	c.filters = map[string]func() (filter, error){}
	for _, mode := range []string{"none", "full", "hosts"} {
		c.filters[mode] = sync.OnceValues(func() (filter, error) { return hostFilter(s.kernel().posture(mode)) })
	}
}

// warm is Warm's work: what does not depend on the Spec or on the store.
func (c *confiner) warm() {
	if c.system.kernel().refusal() == nil {
		c.base()
		_, _ = c.filters["none"]() // whoever needs it gets the error
	}
}

// check answers for a Spec without making anything (§6.3 step 8).
func (c *confiner) check(spec *Spec) (*world, *protocol.Error) {
	if err := c.system.confinable(spec); err != nil {
		return nil, err
	}
	w, err := newWorld(spec)
	if err != nil {
		return nil, err
	}
	return w, w.apart(c.place())
}

// prepare makes the private directory and a launcher, or takes one that waits for the same policy.
func (c *confiner) prepare(spec *Spec) (Box, *protocol.Error) {
	w, refused := c.check(spec)
	if refused != nil {
		return nil, refused
	}
	key := ""
	if c.system.options.Keep > 0 {
		key = w.key()
		if l := c.take(key); l != nil {
			if err := l.private.give(spec); err != nil {
				return nil, unavailable("jail", "The files of the run could not be written: "+errors.Join(err, l.end()).Error()+".")
			}
			return &confinedBox{confiner: c, world: w, launcher: l}, nil
		}
	}
	if refused := w.outside(c.place()); refused != nil {
		return nil, refused
	}
	l, err := c.build(w)
	if err != nil {
		return nil, unavailable("jail", "The jail could not be built: "+err.Error()+".")
	}
	l.key = key
	return &confinedBox{confiner: c, world: w, launcher: l}, nil
}

// build makes the private directory and the ruleset while the new thread strips itself.
func (c *confiner) build(w *world) (*launcher, error) {
	f, err := c.filters[w.mode()]()
	if err != nil {
		return nil, err
	}
	if c.system.kernel().spaces() {
		return c.buildSpace(w, f)
	}
	if err := c.hidden(); err != nil {
		return nil, err
	}
	c.pids.open()
	l := newLauncher(f, c)
	if err := errors.Join(ownScratch(c.system.options.Scratch), c.place().clear(c.shared(w))); err != nil {
		return nil, l.abandon(err)
	}
	if l.private, err = newPrivate(c.place().path, w.spec); err != nil {
		return nil, l.abandon(err)
	}
	own, err := l.private.grants()
	if err != nil {
		return nil, errors.Join(l.abandon(err), l.private.release())
	}
	rules, err := c.ruleset(w, own)
	if err != nil {
		return nil, errors.Join(l.abandon(err), l.private.release())
	}
	if err := l.confine(rules, c.services(l, w, own)...); err != nil {
		return nil, errors.Join(err, l.private.release())
	}
	return l, nil
}

// processes is how the processes of a launcher are held together.
func (c *confiner) processes(l *launcher) processes {
	mode := c.system.kernel().posture("none").signals
	if mode == signalsScoped {
		return scoped{l}
	}
	return unscoped{l, newHeld(&c.system.adopted, mode, c.system.options.Now)}
}

// services are those that the posture of a run needs. own are the grants of its private directory.
func (c *confiner) services(l *launcher, w *world, own []grant) []service {
	var all []service
	if u, ok := l.procs.(unscoped); ok && u.tree.brokered {
		all = append(all, &signals{tree: u.tree})
	}
	if c.system.kernel().posture(w.mode()).metadata == metadataBrokered {
		all = append(all, &metadata{grants: writable(append(own, w.grants...)), uid: uint32(unix.Geteuid())})
	}
	if w.hosts != nil {
		all = append(all, &hostNet{list: w.hosts, lookup: c.system.options.Lookup})
	}
	return all
}

// shared are the grants that every command of a network mode has.
func (c *confiner) shared(w *world) []grant {
	switch w.mode() {
	case "full":
		return slices.Concat(c.base(), c.full())
	case "hosts":
		return slices.Concat(c.base(), c.hosts())
	}
	return c.base()
}

func (c *confiner) ruleset(w *world, own []grant) (ruleset, error) {
	return newRuleset(c.system.kernel(), w.mode(), c.rules(w, own)...)
}

// rules are all grants of a run: what every command has, its private directory, what the Spec names.
func (c *confiner) rules(w *world, own []grant) [][]grant {
	return [][]grant{c.shared(w), own, w.grants}
}

// take removes an idle launcher of the policy from the shelf.
func (c *confiner) take(key string) *launcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range c.idle {
		if l.key == key {
			c.idle = append(c.idle[:i], c.idle[i+1:]...)
			return l
		}
	}
	return nil
}

// put keeps a launcher for the next run, or ends it together with the one that waited longest.
func (c *confiner) put(l *launcher) error {
	if l.key == "" {
		return l.end()
	}
	if err := errors.Join(l.private.empty(), l.private.link()); err != nil {
		return errors.Join(err, l.end())
	}
	c.mu.Lock()
	c.idle = append(c.idle, l)
	var old *launcher
	if len(c.idle) > c.system.options.Keep {
		old, c.idle = c.idle[0], c.idle[1:]
	}
	c.mu.Unlock()
	if old != nil {
		return old.end()
	}
	return nil
}

// end throws a launcher away with its directory.
func (l *launcher) end() error {
	err := l.stop()
	if again := l.private.release(); again != nil {
		return again
	}
	return err
}

func (c *confiner) close() error {
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	var first error
	for _, l := range idle {
		if err := l.end(); err != nil && first == nil {
			first = err
		}
	}
	return first
}
