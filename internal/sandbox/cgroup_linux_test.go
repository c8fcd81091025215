package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// hierarchy is one of cgroups made of plain files: a directory that is made in it has the files that the kernel
// would put there.
func hierarchy(t *testing.T, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	for name, text := range files {
		at := filepath.Join(top, name)
		ok(t, os.MkdirAll(filepath.Dir(at), 0o755))
		ok(t, os.WriteFile(at, []byte(text), 0o644))
	}
	return top
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	ok(t, err)
	return string(text)
}

// likeKernel makes groups as the kernel does, but for the files that are left out.
func likeKernel(parent string, without ...string) *groups {
	return &groups{parent: parent, rmdir: os.RemoveAll, mkdir: func(path string) error {
		err := os.Mkdir(path, 0o755)
		for _, name := range []string{"cgroup.procs", "cgroup.kill", "memory.max", "memory.swap.max", "memory.oom.group", "memory.events", "pids.max", "pids.events"} {
			if !strings.Contains(strings.Join(without, " "), name) {
				err = errors.Join(err, os.WriteFile(filepath.Join(path, name), nil, 0o644))
			}
		}
		return err
	}}
}

// §10.4: a run gets a cgroup of its own in the nearest one, upwards, that hands memory and pids down and may be
// written; nothing that is there is changed for it.
func Test_10_4_where_a_cgroup_is_delegated(t *testing.T) {
	const both, mounts = "cpu memory pids\n", "35 25 0:30 / %s rw,nosuid shared:9 - cgroup2 cgroup rw\n"
	for name, c := range map[string]struct {
		files map[string]string
		own   string
		want  string
	}{
		"the user's slice": {map[string]string{"user/app/cgroup.subtree_control": both, "user/app/cgroup.procs": "", "user/app/cgroup.type": "domain\n",
			"user/app/term/cgroup.subtree_control": "\n", "user/app/term/cgroup.procs": "", "user/app/term/cgroup.type": "domain\n"}, "/user/app/term", "user/app"},
		"the topmost, which has no type": {map[string]string{"cgroup.subtree_control": both, "cgroup.procs": "", "a/cgroup.subtree_control": "", "a/cgroup.procs": ""}, "/a", ""},
		"controllers are not handed down": {map[string]string{"cgroup.subtree_control": "cpu pids\n", "cgroup.procs": "",
			"a/cgroup.subtree_control": "memory\n", "a/cgroup.procs": ""}, "/a", "none"},
		"a threaded one":                     {map[string]string{"a/cgroup.subtree_control": both, "a/cgroup.procs": "", "a/cgroup.type": "threaded\n"}, "/a", "none"},
		"no group at all":                    {nil, "/a", "none"},
		"a group outside of what is mounted": {map[string]string{"cgroup.subtree_control": both, "cgroup.procs": ""}, "/../b", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			top := hierarchy(t, c.files)
			dir, at := groupOf("9:name=systemd:/x\n0::"+c.own+"\n", "24 1 0:1 / /proc rw - proc proc rw\n"+strings.Replace(mounts, "%s", top, 1))
			got := parentGroup(dir, at)
			if want := filepath.Join(top, c.want); c.want == "none" && got != "" || c.want != "none" && got != want {
				t.Errorf("%q, want %q below %s", got, c.want, top)
			}
			for name, text := range c.files {
				if read(t, filepath.Join(top, name)) != text {
					t.Errorf("%s was changed", name)
				}
			}
		})
	}
	// What is mounted may be a part of the hierarchy, as in a container.
	top := hierarchy(t, map[string]string{"in/cgroup.subtree_control": both, "in/cgroup.procs": ""})
	dir, at := groupOf("0::/box/1/in/me\n", "35 25 0:30 /box/1 "+top+" rw - cgroup2 cgroup rw\n")
	if dir != top+"/in/me" || parentGroup(dir, at) != top+"/in" {
		t.Errorf("%s %s", dir, at)
	}
	if dir, _ := groupOf("0::/box/10\n", "35 25 0:30 /box/1 "+top+" rw - cgroup2 cgroup rw\n"); dir != "" {
		t.Errorf("a neighbour: %s", dir)
	}
}

// §10.4: a group that may not be written ends the way up. Root may write everything, so this is told by a file that
// is not there.
func Test_10_4_only_what_may_be_written(t *testing.T) {
	top := hierarchy(t, map[string]string{"cgroup.subtree_control": "memory pids\n", "cgroup.procs": "", "mid/cgroup.subtree_control": "memory pids\n", "mid/own/cgroup.procs": ""})
	if got := parentGroup(top+"/mid/own", top); got != "" {
		t.Error(got)
	}
	ok(t, os.WriteFile(top+"/mid/cgroup.procs", nil, 0o644))
	if got := parentGroup(top+"/mid/own", top); got != top+"/mid" {
		t.Error(got)
	}
}

// §10.4: a group has the limits of the run, takes its processes, tells what was hit, and is gone afterwards.
func Test_10_4_a_run_in_its_group(t *testing.T) {
	parent := t.TempDir()
	n, err := likeKernel(parent).make(Limits{Memory: 1 << 20, Processes: 7})
	ok(t, err)
	for name, want := range map[string]string{"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "7"} {
		if got := read(t, filepath.Join(n.dir, name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	ok(t, n.take([]int{11, 12}))
	ok(t, n.take([]int{11, 12, 13}))
	if got := read(t, n.dir+"/cgroup.procs"); got != "11\n12\n13\n" {
		t.Errorf("moved: %q", got)
	}
	for text, want := range map[string]string{"low 0\nmax 3\noom 0\noom_kill 0\n": "", "max 3\noom 1\noom_kill 2\noom_group_kill 1\n": "memory", "": "processes"} {
		ok(t, os.WriteFile(n.dir+"/memory.events", []byte(text), 0o644))
		if want == "processes" {
			ok(t, os.WriteFile(n.dir+"/pids.events", []byte("max 4\n"), 0o644))
		}
		if got := n.hit(); got != want && got != "processes" {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	n.end()
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

// §10.4: a group that cannot be given its limits is none; swap that is not accounted for is no reason.
func Test_10_4_no_group_without_its_limits(t *testing.T) {
	for without, want := range map[string]bool{"memory.max": false, "pids.max": false, "memory.oom.group": false, "memory.swap.max": true, "cgroup.kill": true} {
		parent := t.TempDir()
		n, err := likeKernel(parent, " "+without).make(Limits{Memory: 1, Processes: 1})
		if (err == nil) != want {
			t.Errorf("without %s: %v", without, err)
		}
		if err == nil {
			n.end()
		}
		if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
			t.Errorf("without %s: %v %v", without, left, err)
		}
	}
	if _, err := likeKernel("").make(Limits{}); err == nil {
		t.Error("a group was made nowhere")
	}
}

// §10.4: what a killed runtime left is removed by the next; what a living one holds, and what is not ours, stays.
func Test_10_4_left_groups_are_removed(t *testing.T) {
	parent := t.TempDir()
	g := likeKernel(parent)
	living, err := g.make(Limits{Memory: 1, Processes: 1})
	ok(t, err)
	for _, name := range []string{"hcpx-4194305-1", "hcpx-1-1", "other"} {
		ok(t, os.Mkdir(filepath.Join(parent, name), 0o755))
	}
	g.clear()
	left, err := filepath.Glob(parent + "/*")
	ok(t, err)
	if len(left) != 2 || left[0] != living.dir && left[1] != living.dir {
		t.Errorf("left: %v", left)
	}
	living.end()
}

// §10.4: a cgroup counts a run from within; where there is none, or it fails, the run is watched all the same.
func Test_10_4_watch_with_and_without_a_group(t *testing.T) {
	self := []int{os.Getpid()}
	for name, c := range map[string]struct {
		g       *groups
		watched string
	}{
		"delegated": {likeKernel(t.TempDir()), watchedCgroup},
		"nowhere":   {likeKernel(""), watchedSampled},
		"no limits": {likeKernel(t.TempDir(), "pids.max"), watchedSampled},
		"no moves":  {likeKernel(t.TempDir(), "cgroup.procs"), watchedSampled},
		"gone":      {likeKernel(t.TempDir() + "/gone"), watchedSampled},
	} {
		t.Run(name, func(t *testing.T) {
			e := &eye{limits: Limits{Memory: 1 << 40, Processes: 1 << 20}, groups: func() *groups { return c.g }}
			if limit := e.look(self); limit != "" || e.watched() != c.watched {
				t.Errorf("%q %s", limit, e.watched())
			}
			e.limits.Processes = 0
			if limit := e.look(self); limit != "processes" {
				t.Errorf("%q", limit)
			}
			e.limits = Limits{Processes: 1 << 20, Memory: 4096}
			if limit := e.look(self); limit != "memory" {
				t.Errorf("%q", limit)
			}
			if e.group != nil {
				ok(t, os.WriteFile(e.group.dir+"/memory.events", []byte("oom_kill 1\n"), 0o644))
				e.limits.Memory = 1 << 40
				if limit := e.look(self); limit != "memory" {
					t.Errorf("%q", limit)
				}
				e.group.end()
			}
		})
	}
}

// §10.4: the numbers of /proc are read as they are: a process that touches memory has it.
func Test_10_4_usage(t *testing.T) {
	const size = 64 << 20
	before, exact := usageOf(os.Getpid()).memory, exactly([]int{os.Getpid()})
	all, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	ok(t, err)
	for i := 0; i < size; i += 4096 {
		all[i] = 1
	}
	use := usageOf(os.Getpid())
	if use.memory < before+size*9/10 || use.threads < 2 {
		t.Errorf("%+v, %d before", use, before)
	}
	if now := exactly([]int{os.Getpid()}); now < exact+size*9/10 {
		t.Errorf("%d, %d before", now, exact)
	}
	ok(t, unix.Munmap(all))
	if gone := usageOf(1 << 30); gone != (usage{}) {
		t.Errorf("process %s: %+v", strconv.Itoa(1<<30), gone)
	}
}
