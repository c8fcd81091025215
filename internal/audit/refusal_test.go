package audit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// plain is a process that root's rights do not help: of another user, when this one is root's.
func plain(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := os.MkdirTemp("", "audit-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	cmd := process(t, dir, args...)
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.Path = "/proc/self/exe" // the directory of the test's program may be root's alone
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// grow appends n entries that need not be durable, and says how many were.
func grow(cfg Config, n int) (done uint64, err error) {
	l := Open(cfg)
	defer func() { err = errors.Join(err, l.Close()) }()
	for range n {
		if err := l.Append(Entry{Kind: Denial, ID: "one", Principal: "human:ada"}, done%3 == 0); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// stands holds that an audit is sound and has so many entries, with nothing left beyond the head.
func stands(cfg Config, entries uint64) error {
	r, err := Verify(cfg)
	if err == nil && (!r.OK || r.Entries != entries || r.Head.Seq != entries || len(r.Notes) > 0) {
		err = fmt.Errorf("want %d entries: %+v", entries, r)
	}
	return err
}

// fullDisk tries every place at which a disk can be full, for a first entry and for later ones.
func fullDisk(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	for limit := uint64(1); limit < 2600; limit += 53 {
		first, later := config(fmt.Sprint(dir, "/first/", limit)), config(fmt.Sprint(dir, "/later/", limit))
		first.SegmentBytes, later.SegmentBytes = 1500+int64(limit%3)*1000, 1 // a segment for each entry
		before, err := grow(later, 3)
		if err == nil && limit%2 == 0 {
			_, err = makeKey(first.KeyPath)
		}
		if err != nil {
			return err
		}
		if err := errors.Join(fullAt(limit, first, 0), fullAt(limit, later, before)); err != nil {
			return fmt.Errorf("limit %d: %w", limit, err)
		}
	}
	return nil
}

// fullAt lets no file grow past a limit: the write that would is cut short. What Append said is written is
// there, what it refused is not, nor later.
func fullAt(limit uint64, cfg Config, before uint64) error {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: old.Max}); err != nil {
		return err
	}
	done, full := grow(cfg, 12)
	again, _ := grow(cfg, 1) // refused again, unless its line is shorter
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if full == nil && limit < headSize {
		return errors.New("nothing was refused")
	}
	if err := stands(cfg, before+done+again); err != nil {
		return fmt.Errorf("%w: %w", full, err)
	}
	if _, err := grow(cfg, 8); err != nil {
		return err
	}
	return stands(cfg, before+done+again+8)
}

func Test_15_4_AFullDiskRefusesAndLosesNothing(t *testing.T) {
	run(t, plain(t, "full"))
}

// closedDoors are what may not be written or read, each of it needed by the next entry.
var closedDoors = []struct {
	name  string
	fresh bool // nothing was written before
	mode  os.FileMode
	path  func(cfg Config) string
}{
	{"the head read-only", false, 0o400, func(cfg Config) string { return filepath.Join(cfg.Dir, "head") }},
	{"the head closed", false, 0, func(cfg Config) string { return filepath.Join(cfg.Dir, "head") }},
	{"the segment read-only", false, 0o400, func(cfg Config) string { return segmentPath(cfg.Dir, 1) }},
	{"no new segment", false, 0o500, func(cfg Config) string { return cfg.Dir }},
	{"the directory closed", false, 0, func(cfg Config) string { return cfg.Dir }},
	{"no first head", true, 0o500, func(cfg Config) string { return cfg.Dir }},
	{"no directory", true, 0o500, func(cfg Config) string { return filepath.Dir(cfg.Dir) }},
	{"no first key", true, 0o500, func(cfg Config) string { return filepath.Dir(cfg.KeyPath) }},
	{"no directory for the key", true, 0o500, func(cfg Config) string { return filepath.Dir(filepath.Dir(cfg.KeyPath)) }},
	{"the key closed", false, 0, func(cfg Config) string { return cfg.KeyPath }},
}

// closedDoor holds that nothing is appended while a door is closed, and all goes on when it is open again.
func closedDoor(dir string, no int) error {
	c, cfg, before := closedDoors[no], config(dir), uint64(0)
	path := c.path(cfg)
	err := os.MkdirAll(filepath.Dir(filepath.Dir(cfg.KeyPath)), 0o700)
	if c.fresh {
		err = os.MkdirAll(path, 0o700)
	} else if err == nil {
		before, err = grow(cfg, 5)
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.Chmod(path, c.mode); err != nil {
		return err
	}
	closed := cfg
	closed.SegmentBytes = 1
	if _, err := grow(closed, 1); err == nil || !strings.Contains(err.Error(), "the audit can't be written") || !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("not refused: %w", err)
	}
	if err := Look(cfg); err == nil && !c.fresh {
		return errors.New("the quick look sees nothing")
	}
	if path == cfg.KeyPath { // as for another user: the chain alone is checked, and that is said
		r, err := Verify(cfg)
		if err != nil || r.Entries != before || len(r.Problems) != 1 || r.Problems[0].Kind != "key-missing" {
			return fmt.Errorf("without the key: %+v, %w", r, err)
		}
	}
	if err := errors.Join(os.Chmod(path, info.Mode().Perm()), stands(cfg, before)); err != nil {
		return err
	}
	if _, err := grow(cfg, 5); err != nil {
		return err
	}
	return errors.Join(stands(cfg, before+5), Look(cfg))
}

func Test_15_4_WhatMayNotBeWrittenIsRefused(t *testing.T) {
	for no, c := range closedDoors {
		t.Run(c.name, func(t *testing.T) {
			run(t, plain(t, "closed", strconv.Itoa(no)))
		})
	}
}

// Before the first entry there is nothing amiss, as for verify.
func Test_15_4_TheQuickLookAtNothing(t *testing.T) {
	cfg := config(t.TempDir())
	for _, make := range []func() error{
		func() error { return nil },
		func() error { return os.MkdirAll(cfg.Dir, 0o700) },
		func() error { return os.WriteFile(cfg.Dir+"/head", nil, 0o600) },
	} {
		if err := errors.Join(make(), Look(cfg), stands(cfg, 0)); err != nil {
			t.Error(err)
		}
	}
}

func Test_15_4_TheQuickLookSeesACutTail(t *testing.T) {
	cfg := filled(t, 10)
	if err := Look(cfg); err != nil {
		t.Fatal(err)
	}
	h, err := ReadHead(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(segmentPath(cfg.Dir, h.Segment), h.Size-1); err != nil {
		t.Fatal(err)
	}
	if err := Look(cfg); !errors.Is(err, ErrCut) {
		t.Errorf("cut: %v", err)
	}
	remove(t, segmentPath(cfg.Dir, h.Segment))
	if err := Look(cfg); !errors.Is(err, ErrCut) {
		t.Errorf("gone: %v", err)
	}
	remove(t, cfg.Dir+"/head")
	if err := Look(cfg); !errors.Is(err, ErrHead) {
		t.Errorf("no head: %v", err)
	}
}
