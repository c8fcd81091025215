package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// roomy is a kernel below the floor of Landlock, where a run gets namespaces of its own.
func roomy(abi int) *sandbox.Kernel {
	k := able()
	k.ABI, k.Errata, k.Namespaces = abi, 0, true
	return &k
}

// §10.5: namespaces keep the whole contract, with Landlock's execute right and without any Landlock.
func Test_10_5_namespaces(t *testing.T) {
	for _, p := range postures() {
		if !p.spacious() {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			sandboxtest.Run(t, sandboxtest.Kind{Contained: true, Open: func(t *testing.T, scratch string) sandbox.Sandbox {
				o := p.options
				o.Scratch = scratch
				return confining(t, o)
			}})
		})
	}
}

// postureOf is the posture whose name is a part of the test's name, by default the one of this machine.
func postureOf(t testing.TB) posture {
	parts := strings.Split(t.Name(), "/")
	for _, p := range postures() {
		if slices.Contains(parts, p.name) {
			return p
		}
	}
	return posture{}
}

// hostVar tells a runtime of its own which posture it has.
const hostVar = "SANDBOX_HOST_POSTURE"

// ofHost is the kernel that such a runtime holds.
func ofHost() *sandbox.Kernel {
	for _, p := range postures() {
		if p.name == os.Getenv(hostVar) {
			return p.options.Kernel
		}
	}
	return nil
}

// §10.5: what the other tests say of a jail holds in namespaces too, and where signals go through the broker, as this
// user and as an ordinary one.
func Test_10_5_spacious(t *testing.T) {
	tests := map[string]func(*testing.T){
		"real programs": Test_10_2_real_programs, "git": Test_10_2_git, "refuses": Test_10_2_jail_refuses,
		"interpreter": Test_10_2_script_needs_interpreter, "own executables": Test_10_2_own_executables, "links": Test_10_2_links_in_home,
		"network": Test_10_2_network, "by a link": Test_10_2_private_directories_by_a_link, "descriptors": Test_10_2_own_descriptors,
		"directory removed": Test_6_9_working_directory_removed, "left-overs": Test_6_9_left_overs_counted, "metadata": Test_10_2_metadata_inside_works,
		"bomb": Test_6_9_fork_bomb_leaves_no_survivor, "cancel": Test_6_9_cancel_at_any_moment, "limits": Test_10_4_limits,
		"runtimes at once": Test_10_2_runtimes_at_once, "runtime killed": Test_6_9_runtime_killed,
	}
	redteamtest.Users(t, func(t *testing.T, _ string) {
		for _, p := range looked() {
			if p.options.Kernel == nil {
				continue
			}
			t.Setenv(hostVar, p.name)
			t.Run(p.name, func(t *testing.T) {
				for name, test := range tests {
					if name != "limits" || p.options.Kernel.ABI == 0 { // they take long, and know nothing of Landlock
						t.Run(name, test)
					}
				}
			})
		}
	})
}

// §10.2: network hosts in namespaces: the listener of the filter comes out of the jail, and the runtime connects.
func Test_10_5_spacious_hosts(t *testing.T) {
	t.Run("namespace", func(t *testing.T) {
		if got := confining(t, sandbox.Options{}).Facts().Backend; got != "namespace" {
			t.Fatalf("backend %q", got)
		}
		t.Run("names", Test_10_2_hosts_names_are_no_way_out)
	})
}

// §10.2: where a command changes attributes itself, none of its private directories outlives the run.
func Test_10_2_attributes_end_with_the_run(t *testing.T) {
	t.Run("namespace", func(t *testing.T) {
		s := newScene(t)
		if why, worked := s.control("xattr", s.file); !worked {
			t.Logf("void: this file system has no attributes: %s", why)
			return
		}
		if o := sandboxtest.Exec(t, s.sandbox, s.spec("xattr-home")); o.Exit != 0 {
			t.Fatalf("it cannot change its own: %s", o.Stderr)
		}
		home := filepath.Dir(s.land) + "/scratch/0/home"
		if n, err := unix.Llistxattr(home, nil); n != 0 || err != nil {
			t.Errorf("left: %d bytes of names, %v", n, err)
		}
	})
}

// §10.5: /proc in namespaces has the command's own processes, and not the first one, whoever the user is.
func Test_10_5_first_process_is_not_shown(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, place string) {
		s := confining(t, sandbox.Options{Scratch: place + "/scratch", Kernel: roomy(0)})
		spec := script(t, "test -e /proc/self/stat && echo own; test -e /proc/1 && echo first; cat /proc/1/cmdline /proc/1/cgroup /proc/1/mounts /proc/net/tcp; true", "cat")
		if o := sandboxtest.Exec(t, s, spec); string(o.Stdout) != "own\n" {
			t.Errorf("%q\n%s", o.Stdout, o.Stderr)
		}
		if row := find(s.Facts(), "proc"); row.State != "degraded" || !strings.Contains(row.Detail, "sockets and routes") {
			t.Errorf("%+v", row)
		}
	})
}

// spacious says that runs have namespaces of their own.
func (p posture) spacious() bool { return p.options.Kernel != nil && p.options.Kernel.Namespaces }

// says whether an attack failed for the reason that its row wants. Where there are namespaces it may be that what is
// attacked is not there at all, or is mounted read-only.
func (p posture) says(reason string, row redteamtest.Row) bool {
	if strings.Contains(reason, row.Want) {
		return true
	}
	return p.spacious() && slices.ContainsFunc([]string{"no such file or directory", "read-only file system", "permission denied",
		"invalid argument", "no such process"}, func(other string) bool { return strings.Contains(reason, other) })
}

// loose says that a row works by what the report calls degraded: namespaces without any Landlock.
func (p posture) loose(row redteamtest.Row) bool {
	return p.spacious() && p.options.Kernel.ABI == 0 && slices.Contains([]string{"write to a device that may be read", "make a named socket",
		"command lines of anybody", "own groups of resources", "own mounts", "map of own users", "list all processes"}, row.Name)
}
