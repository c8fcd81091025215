//go:build unix

package protect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/order"
)

// lock is a directory that one run holds: the workspace's root, a git directory elsewhere or in it. It stays open as
// long, so that its inode number can't become another directory's.
type lock struct {
	place
	dir *os.File
	own *os.File // a file of the store in its stead, where the directory's file system has no locks
}

type locks []lock

func (ls locks) close() error {
	var err error
	for _, l := range ls {
		err = errors.Join(err, l.dir.Close())
		if l.own != nil {
			err = errors.Join(err, l.own.Close())
		}
	}
	return err
}

func (ls locks) has(p place) bool {
	return slices.ContainsFunc(ls, func(l lock) bool { return l.is(p) })
}

func (ls locks) names() []place {
	var all []place
	for _, l := range ls {
		all = append(all, l.place)
	}
	return all
}

// is says whether both are one directory.
func (p place) is(q place) bool {
	return p.Dev == q.Dev && p.Ino == q.Ino && (p.Born == q.Born || p.Born == 0 || q.Born == 0)
}

// domain opens what a run in these trees must hold, in the order in which everybody takes it: submodules' git
// directories too, in which another run may have its root.
func domain(ts trees, user string) (locks, *namer, error) {
	n, err := found(ts, user)
	if err != nil {
		return nil, nil, err
	}
	all, err := opened(ts, slices.Clone(n.git))
	return all, n, err
}

// found is all that git would look into. What is too much to be found so is told by the look.
func found(ts trees, user string) (*namer, error) {
	git, err := gitPlaces(ts)
	if err != nil {
		return nil, err
	}
	return named(ts, user, git), nil
}

// roots are the trees alone.
func roots(ts trees) (locks, error) { return opened(ts, nil) }

func opened(ts trees, git []gitPlace) (locks, error) {
	for i := range ts {
		git = append(git, gitPlace{Tree: i, Rel: "."})
	}
	var all locks
	for _, g := range git {
		if g.Linked || g.Shelf {
			continue // whose git directory is held
		}
		fd, err := ts[g.Tree].open(g.Rel)
		if err != nil && g.Rel == "." {
			fd, err = unix.FcntlInt(ts[g.Tree].handle.Fd(), unix.F_DUPFD_CLOEXEC, 0) // nobody may enter it
		}
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue // it is being replaced; who does so holds the root
		}
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		f := os.NewFile(uintptr(fd), g.Rel)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return nil, errors.Join(err, f.Close(), all.close())
		}
		l := lock{place: place{filepath.Join(ts[g.Tree].path, g.Rel), uint64(st.Dev), st.Ino, born(fd, "")}, dir: f}
		if all.has(l.place) {
			err = f.Close()
		} else {
			all = append(all, l)
		}
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
	}
	order.By(all, func(a, b lock) int { return cmp.Or(cmp.Compare(a.Dev, b.Dev), cmp.Compare(a.Ino, b.Ino)) })
	return all, nil
}

// hold takes the workspace and each of its git directories for one run. It looks again once it has them: who held
// them before may have made or removed some.
func hold(ctx context.Context, w Watch, ts trees) (locks, *namer, error) {
	late := time.NewTimer(w.Patience)
	defer late.Stop()
	for {
		took, _, err := domain(ts, w.User)
		if err != nil {
			return nil, nil, err
		}
		for i := range took {
			if err := took[i].take(ctx, w.Home, late.C); err != nil {
				return nil, nil, errors.Join(err, took.close())
			}
		}
		now, n, err := domain(ts, w.User)
		if err != nil {
			return nil, nil, errors.Join(err, took.close())
		}
		same := !slices.ContainsFunc(now, func(l lock) bool { return !took.has(l.place) })
		if err := now.close(); err != nil || same {
			return took, n, err
		}
		if err := took.close(); err != nil {
			return nil, nil, err
		}
	}
}

// take waits for one lock.
func (l *lock) take(ctx context.Context, home string, late <-chan time.Time) error {
	f := l.dir
	for nap := time.Millisecond; ; nap = min(2*nap, 20*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			if l.own != nil {
				return err
			}
			if l.own, err = lockFile(home, l.place); err != nil {
				return err
			}
			f = l.own
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return &BusyError{l.Path}
		case <-time.After(nap):
		}
	}
}

// lockFile stands for a directory whose file system knows no locks.
func lockFile(home string, p place) (*os.File, error) {
	dir := filepath.Join(quarantineDir(home), ".locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, fmt.Sprintf("%x-%x", p.Dev, p.Ino)), os.O_RDWR|os.O_CREATE, 0o600)
}
