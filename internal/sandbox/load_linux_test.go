package sandbox_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox"
)

// guards are goroutines that do what a confined one could not, one of them on a locked thread.
type guards struct {
	stop            atomic.Bool
	all             sync.WaitGroup
	looked, refused atomic.Int64
}

func watch(secret string) *guards {
	g := &guards{}
	for i := range 2 {
		g.all.Go(func() {
			if i == 0 {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			for !g.stop.Load() {
				g.look(secret)
				time.Sleep(100 * time.Microsecond) // leaves the machine to the runs
			}
		})
	}
	return g
}

func (g *guards) look(secret string) {
	g.looked.Add(1)
	if _, err := os.ReadFile(secret); err != nil {
		g.refused.Add(1)
	}
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err != nil || l.Close() != nil {
		g.refused.Add(1)
	}
	if fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil || unix.Close(fd) != nil {
		g.refused.Add(1)
	}
	if unix.Kill(os.Getppid(), 0) != nil {
		g.refused.Add(1)
	}
}

func (g *guards) end() (looked, refused int64) {
	g.stop.Store(true)
	g.all.Wait()
	return g.looked.Load(), g.refused.Load()
}

// pressure keeps the garbage collector at work without a pause, and takes and gives back memory all the time.
func pressure() (end func()) {
	percent, limit := debug.SetGCPercent(5), debug.SetMemoryLimit(16<<20)
	var stop atomic.Bool
	var done sync.WaitGroup
	done.Go(func() {
		for !stop.Load() {
			if balloon, err := touched(64); err == nil {
				_ = unix.Munmap(balloon)
			}
			time.Sleep(time.Millisecond)
		}
	})
	return func() {
		stop.Store(true)
		done.Wait()
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// steady is how many entries a directory of /proc/self has once that falls no more.
func steady(t *testing.T, dir string) int {
	t.Helper()
	n := count(t, dir)
	for same := 0; same < 20; same++ {
		time.Sleep(10 * time.Millisecond)
		if now := count(t, dir); now < n {
			n, same = now, 0
		}
	}
	return n
}

// soakMark is how long whatever a run of the soak leaves would sleep; nothing else has it in its arguments.
const soakMark = "3608"

// soakKind is one kind of run, and what must come of it.
type soakKind struct {
	script string
	share  int // of all runs
	limits sandbox.Limits
	cancel time.Duration
	want   func(o *sandbox.Outcome) bool
}

func soakKinds(secret string) []soakKind {
	exits := func(code int) func(*sandbox.Outcome) bool {
		return func(o *sandbox.Outcome) bool { return o.Exit == code && o.Limit == "" }
	}
	late := func(o *sandbox.Outcome) bool { return o.TimedOut || o.Limit == "processes" }
	soon := sandbox.Limits{Wall: 60 * time.Millisecond, Grace: 10 * time.Millisecond}
	tight := soon
	tight.Processes, tight.Wall = 6, time.Minute
	const bomb = "b() { if [ $1 = 0 ]; then exec sleep " + soakMark + "; fi; b $(($1-1)) & b $(($1-1)) & wait; }; "
	return []soakKind{
		{"exit 0", 40, sandbox.Limits{}, 0, exits(0)},
		{"exit 3", 10, sandbox.Limits{}, 0, exits(3)},
		{"cat " + secret + " 2>/dev/null", 10, sandbox.Limits{}, 0, exits(1)},
		{"echo x >$TMPDIR/f; chmod 600 $TMPDIR/f && touch -d 2001-01-01 $TMPDIR/f", 10, sandbox.Limits{}, 0, exits(0)},
		{"sleep " + soakMark + " & exit 0", 10, sandbox.Limits{}, 0, func(o *sandbox.Outcome) bool { return o.Exit == 0 && o.Report.Killed == 1 }},
		{"(setsid sleep " + soakMark + " >/dev/null 2>&1 &) ; exit 4", 10, sandbox.Limits{}, 0, exits(4)},
		{"trap '' TERM; sleep " + soakMark, 3, soon, 0, late},
		{bomb + "b 3", 3, soon, 0, late},
		{bomb + "b 4", 2, tight, 0, late},
		{"sleep " + soakMark, 2, sandbox.Limits{Wall: time.Minute, Grace: 10 * time.Millisecond}, 5 * time.Millisecond, func(o *sandbox.Outcome) bool { return o.Canceled }},
	}
}

// soak is many runs at once, half of them on launchers that are kept.
type soak struct {
	t       *testing.T
	systems [2]*sandbox.System
	kinds   []soakKind // one entry for each of a hundred runs
	next    atomic.Int64
}

func newSoak(t *testing.T, root string, keep int) *soak {
	s := &soak{t: t}
	secret := root + "/secret"
	must(t, os.WriteFile(secret, []byte("content"), 0o600))
	s.systems[0] = sandbox.New(sandbox.Options{Scratch: root + "/once"})
	s.systems[1] = sandbox.New(sandbox.Options{Scratch: root + "/kept", Keep: keep})
	for _, kind := range soakKinds(secret) {
		for range kind.share {
			s.kinds = append(s.kinds, kind)
		}
	}
	return s
}

// many makes n runs, so many at once; a step of 37 mixes the kinds.
func (s *soak) many(n int64, atOnce int) {
	base := s.next.Load()
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := s.next.Add(1); i <= base+n; i = s.next.Add(1) {
				if err := s.one(s.kinds[i*37%int64(len(s.kinds))], s.systems[i/2%2]); err != nil {
					s.t.Errorf("run %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	s.next.Store(base + n)
}

func (s *soak) one(kind soakKind, system *sandbox.System) error {
	spec := script(s.t, kind.script, "cat", "chmod", "touch", "sleep", "setsid")
	spec.Limits = kind.limits
	box, refused := system.Prepare(spec)
	if refused != nil {
		return refused
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if kind.cancel > 0 {
		time.AfterFunc(kind.cancel, cancel)
	}
	o, refused := box.Run(ctx)
	if err := box.Close(); err != nil {
		return err
	}
	if refused != nil && kind.cancel > 0 { // it may come before the start
		return nil
	}
	if refused != nil {
		return refused
	}
	if !kind.want(o) {
		return fmt.Errorf("%s: %+v\n%s", kind.script, o, o.Stderr)
	}
	return nil
}

// §10.5: thousands of runs, eight at once, under pressure: goroutines of the runtime stay free, and no process,
// descriptor, thread or directory is left.
func Test_10_5_soak(t *testing.T) {
	runs, atOnce := int64(4000), 8
	if testing.Short() || racing {
		runs = 400
	}
	root := t.TempDir()
	confining(t, sandbox.Options{Scratch: root + "/probe"})
	s := newSoak(t, root, atOnce/2)
	load := func(runs int64) (looked, refused int64) {
		g, relieve := watch(root+"/secret"), pressure()
		s.many(runs, atOnce)
		relieve()
		looked, refused = g.end()
		must(t, s.systems[1].Close())
		return looked, refused
	}
	load(100) // what a process starts once stays
	threads, files := steady(t, "task"), steady(t, "fd")
	if looked, refused := load(runs); refused > 0 || looked == 0 {
		t.Errorf("%d of %d looks from free goroutines were refused", refused, looked)
	}
	const idle = 2 // threads more or less that the scheduler found useful
	if n := settled(t, "task", threads+idle); n > threads+idle {
		t.Errorf("%d threads, %d before", n, threads)
	}
	if n := settled(t, "fd", files); n > files {
		t.Errorf("%d descriptors, %d before", n, files)
	}
	if left := processes(t, soakMark); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
	for _, part := range []string{"once", "kept"} {
		slots, err := filepath.Glob(filepath.Join(root, part, "*"))
		must(t, err)
		if len(slots) > atOnce {
			t.Errorf("%s: %d private directories for %d runs at once", part, len(slots), atOnce)
		}
	}
}
