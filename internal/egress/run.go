package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Lookup resolves one name to its addresses; it is asked for listed names alone.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, error)

// Dial opens a TCP connection to an address that was checked.
type Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)

// Bounds of one run.
const (
	maxAddrs   = 8   // of a family, of a name
	maxConns   = 256 // of both sides
	lookupTime = 10 * time.Second
	dialTime   = 10 * time.Second
	headTime   = 30 * time.Second
	lingerTime = 5 * time.Second
)

// found is what a name was resolved to in this run.
type found struct {
	addrs  []netip.Addr // usable ones
	failed bool         // the resolver had no answer, not even that there is none
	barred bool         // it has addresses, and none that a name may lead to
}

// Run holds the decisions of one run. Its methods may be called from several goroutines.
type Run struct {
	list  *List
	dial  Dial
	deny  func(what string)       // keeps a refusal for the report of the run
	names map[string]func() found // each asks the resolver at most once

	life context.Context // ends with the run
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	known  map[netip.Addr][]string // which listed names were resolved to an address
	conns  map[net.Conn]bool
	closed bool
}

// Outside is what a run brings: how names are resolved and addresses dialed, and who is told of a refusal.
type Outside struct {
	Lookup Lookup // nil = no name can be resolved
	Dial   Dial
	Deny   func(what string)
}

// NewRun begins a run. Close ends it and everything that it serves.
func NewRun(list *List, o Outside) *Run {
	r := &Run{list: list, dial: o.Dial, deny: o.Deny, names: map[string]func() found{}, known: map[netip.Addr][]string{}, conns: map[net.Conn]bool{}}
	r.life, r.end = context.WithCancel(context.Background())
	for name := range list.names {
		r.names[name] = sync.OnceValue(func() found { return r.resolve(name, o.Lookup) })
	}
	return r
}

// resolve asks for a listed name and drops what a name may not lead to (§10.2).
func (r *Run) resolve(name string, lookup Lookup) found {
	if name == Localhost {
		return r.learn(name, loopbacks())
	}
	if lookup == nil {
		return r.unresolved(name, true)
	}
	ctx, cancel := context.WithTimeout(r.life, lookupTime)
	defer cancel()
	got, err := lookup(ctx, name)
	if err != nil {
		var none *net.DNSError
		return r.unresolved(name, !errors.As(err, &none) || !none.IsNotFound)
	}
	var all []netip.Addr
	count := map[bool]int{}
	for _, addr := range got {
		addr = addr.Unmap()
		if four := addr.Is4(); addr.IsValid() && addr.Zone() == "" && !slices.Contains(all, addr) && count[four] < maxAddrs {
			count[four]++
			all = append(all, addr)
		}
	}
	if len(all) == 0 {
		return r.unresolved(name, false)
	}
	usable := r.list.forName(name, all)
	if len(usable) == 0 {
		r.deny("name " + name + ": " + string(classOf(all[0])) + " " + all[0].String())
		return found{barred: true}
	}
	return r.learn(name, usable)
}

// unresolved is a listed name without an address. Nothing was refused, but nobody else would say why it failed.
func (r *Run) unresolved(name string, failed bool) found {
	if r.life.Err() == nil { // a run that is over broke it off
		r.deny("name " + name + ": does not resolve")
	}
	return found{failed: failed}
}

// learn keeps what a name led to, for programs that connect by themselves.
func (r *Run) learn(name string, addrs []netip.Addr) found {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, addr := range addrs {
		r.known[addr] = append(r.known[addr], name)
	}
	return found{addrs: addrs}
}

// Connect decides about an address and a port that the command connects to by itself; false is a refusal, which
// was told then.
func (r *Run) Connect(to netip.AddrPort) bool {
	to = plain(to)
	why := r.refusal(to)
	if why != "" {
		r.deny("connect " + to.String() + ": " + why)
	}
	return why == ""
}

// Open says whether Connect would allow it; nobody is told.
func (r *Run) Open(to netip.AddrPort) bool {
	return r.refusal(plain(to)) == ""
}

// plain is an address without the mapping of one family in the other. One with a zone stays as it is, so that it is
// refused: the zone would be lost.
func plain(to netip.AddrPort) netip.AddrPort {
	if to.Addr().Zone() != "" {
		return to
	}
	return netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
}

func (r *Run) refusal(to netip.AddrPort) string {
	switch c := classOf(to.Addr()); {
	case to.Addr().Zone() != "":
		return "an address with a zone"
	case c == unspecified, c == multicast:
		return string(c)
	case r.list.literals[to]:
		return ""
	case c != public:
		return string(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.known[to.Addr()] {
		if r.list.names[name][to.Port()] {
			return ""
		}
	}
	return "not listed"
}

// targets decides about a host and a port that the proxy is asked for. No address is a failure, of which the report
// knows; refused says that the list is the reason.
func (r *Run) targets(host string, port uint16) (to []netip.AddrPort, refused bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		to := plain(netip.AddrPortFrom(addr, port))
		if !r.Connect(to) {
			return nil, true
		}
		return []netip.AddrPort{to}, false
	}
	name := foldName(host)
	if !r.list.names[name][port] {
		r.deny("connect " + printable(name) + ":" + strconv.Itoa(int(port)) + ": not listed")
		return nil, true
	}
	got := r.names[name]()
	for _, addr := range got.addrs {
		if r.list.usable(addr, port) {
			to = append(to, netip.AddrPortFrom(addr, port))
		}
	}
	if len(to) == 0 && len(got.addrs) > 0 { // they are another port's
		addr := got.addrs[0]
		r.deny("connect " + name + ":" + strconv.Itoa(int(port)) + ": " + string(classOf(addr)) + " " + addr.String())
	}
	return to, got.barred || len(got.addrs) > 0 && len(to) == 0
}

// Serve handles a connection of the command in an own goroutine, and closes it in the end. Past a number of them, and
// after the run, it is closed at once.
func (r *Run) Serve(c net.Conn, handle func(*Run, net.Conn)) {
	if !r.hold(c) {
		return
	}
	go func() {
		defer r.work.Done()
		defer r.drop(c)
		handle(r, c)
	}()
}

// hold registers a connection that Close has to end.
func (r *Run) hold(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.conns) >= maxConns {
		_ = c.Close()
		return false
	}
	r.conns[c] = true
	r.work.Add(1)
	return true
}

func (r *Run) drop(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
	_ = c.Close()
}

// Close ends the run: nothing is resolved, dialed or carried any more when it returns.
func (r *Run) Close() {
	r.end()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.work.Wait()
}
