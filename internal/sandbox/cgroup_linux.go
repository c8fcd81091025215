package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// groups is a place in the unified hierarchy of cgroups below which each run can have a group of its own, with a
// limit on its memory and its processes (§10.4). Nothing that is there already is changed: where no group that this
// process may write hands both controllers down, there is no such place.
type groups struct {
	parent       string // "" = there is none
	mkdir, rmdir func(path string) error
	made         atomic.Int64
}

// hostGroups finds the place on this machine, and removes what killed runtimes left in it.
func hostGroups() *groups {
	g := &groups{
		mkdir: func(path string) error { return unix.Mkdir(path, 0o755) },
		rmdir: unix.Rmdir,
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	mounts, again := os.ReadFile("/proc/self/mountinfo")
	if err == nil && again == nil {
		g.parent = parentGroup(groupOf(string(own), string(mounts)))
	}
	if g.parent != "" {
		g.clear()
	}
	return g
}

// groupOf is the directory of this process's group in the unified hierarchy, and where that is mounted.
func groupOf(own, mounts string) (dir, top string) {
	path := ""
	for line := range strings.Lines(own) {
		if rest, ok := strings.CutPrefix(line, "0::/"); ok {
			path = "/" + strings.TrimSuffix(rest, "\n")
		}
	}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		root, at := strings.TrimSuffix(fields[3], "/"), fields[4]
		rest, below := strings.CutPrefix(path, root)
		if !below || path == "" || rest != "" && rest[0] != '/' || strings.Contains(path, "/..") || strings.Contains(at, `\`) {
			continue
		}
		return filepath.Join(at, rest), at
	}
	return "", ""
}

// parentGroup is the nearest group, from dir up to top, whose children get both controllers and in which this
// process may make one. A process may be moved only within what one may write, so the way up ends where that ends.
func parentGroup(dir, top string) string {
	for first := true; dir != ""; first = false {
		may := unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
		if may && handsDown(dir) {
			return dir
		}
		if dir == top || !may && !first {
			return ""
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// handsDown says whether a child of the group has limits on memory and processes.
func handsDown(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	kind, again := os.ReadFile(filepath.Join(dir, "cgroup.type")) // the topmost has none
	named := map[string]bool{}
	for _, name := range strings.Fields(string(text)) {
		named[name] = true
	}
	return err == nil && (again != nil || strings.TrimSpace(string(kind)) == "domain") && named["memory"] && named["pids"]
}

const groupPrefix = "hcpx-"

// clear removes the groups of runtimes that are gone. Each holds a lock on its own, so a number that another
// process has now, or in another namespace, misleads nobody.
func (g *groups) clear() {
	left, _ := filepath.Glob(filepath.Join(g.parent, groupPrefix+"*"))
	for _, dir := range left {
		fd, err := lockGroup(dir)
		if err != nil {
			continue
		}
		_ = put(dir, "cgroup.kill", "1")
		_ = g.rmdir(dir) // what is not empty yet is left to the next one
		_ = unix.Close(fd)
	}
}

func lockGroup(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return -1, closing(fd, err)
	}
	return fd, nil
}

// put writes a file of a group.
func put(dir, name, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// group is the group of one run.
type group struct {
	of   *groups
	dir  string
	lock int
}

// make makes a group with the limits of a run.
func (g *groups) make(l Limits) (*group, error) {
	if g.parent == "" {
		return nil, errors.ErrUnsupported
	}
	n := &group{of: g, dir: filepath.Join(g.parent, fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), g.made.Add(1)))}
	if err := g.mkdir(n.dir); err != nil {
		return nil, err
	}
	lock, err := lockGroup(n.dir)
	if err != nil {
		return nil, errors.Join(err, g.rmdir(n.dir))
	}
	n.lock = lock
	swap := put(n.dir, "memory.swap.max", "0")
	if errors.Is(swap, os.ErrNotExist) { // swap is not accounted for here
		swap = nil
	}
	err = errors.Join(swap, put(n.dir, "memory.max", strconv.FormatUint(l.Memory, 10)), put(n.dir, "memory.oom.group", "1"),
		put(n.dir, "pids.max", strconv.Itoa(l.Processes)))
	if err != nil {
		n.end()
		return nil, err
	}
	return n, nil
}

// take moves the processes of the run that are not in the group into it. Whatever they start from then on is born
// there. One that has ended needs no move.
func (n *group) take(pids []int) error {
	text, err := os.ReadFile(filepath.Join(n.dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	in := map[string]bool{}
	for _, pid := range strings.Fields(string(text)) {
		in[pid] = true
	}
	for _, pid := range pids {
		number := strconv.Itoa(pid)
		if in[number] {
			continue
		}
		if move := put(n.dir, "cgroup.procs", number+"\n"); !errors.Is(move, unix.ESRCH) {
			err = errors.Join(err, move)
		}
	}
	return err
}

// hit names the limit that the kernel says was hit, "" when none was.
func (n *group) hit() string {
	memory := n.events("memory.events")
	switch {
	case memory["oom_kill"] > 0 || memory["oom_group_kill"] > 0:
		return "memory"
	case n.events("pids.events")["max"] > 0:
		return "processes"
	}
	return ""
}

func (n *group) events(name string) map[string]int {
	text, err := os.ReadFile(filepath.Join(n.dir, name))
	if err != nil {
		return nil
	}
	found := map[string]int{}
	fields := strings.Fields(string(text))
	for i := 0; i+1 < len(fields); i += 2 {
		found[fields[i]], _ = strconv.Atoi(fields[i+1])
	}
	return found
}

// kill ends whatever is in the group, beside the other ways (§6.9).
func (n *group) kill() { _ = put(n.dir, "cgroup.kill", "1") } // kernels before 5.14 have no such file

// end removes the group. The dead leave it a moment after they were waited for.
func (n *group) end() {
	n.kill()
	for range 50 {
		if err := n.of.rmdir(n.dir); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	_ = unix.Close(n.lock)
}

// delegated is the cgroup in which runs get one of their own, "" = none; doctor shows it.
func (c *confiner) delegated() string { return c.groups().parent }
