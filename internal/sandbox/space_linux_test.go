package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// spacedSystem is a System for a kernel without Landlock.
func spacedSystem(t *testing.T, c *Canary) *System {
	t.Helper()
	k := probe()
	k.ABI, k.Errata = 0, 0
	if k.Barrier = spacesPossible(); k.Barrier != "" {
		t.Skipf("no namespaces here: %s", k.Barrier)
	}
	k.Namespaces = true
	return New(Options{Scratch: filepath.Join(t.TempDir(), "run"), Kernel: &k, Canary: c, Accept: Accepted()})
}

// §10.5: the canary holds namespaces to what they promise.
func Test_10_5_canary_in_namespaces(t *testing.T) {
	dir := t.TempDir()
	s := spacedSystem(t, &Canary{Dir: filepath.Join(dir, "canary"), Proof: filepath.Join(dir, "canary", "passed")})
	if err := s.proof.need(nil); err != nil {
		t.Fatalf("%v %v", err, err.Details)
	}
}

// without is the kernel where the operator accepts nothing.
func (k Kernel) without() Kernel {
	k.accept = ""
	return k
}

// §10.5: what namespaces keep less well without Landlock runs only where the
// operator accepts it; then the table and each report name it.
func Test_10_5_namespaces_say_what_is_looser(t *testing.T) {
	s := spacedSystem(t, nil)
	facts := s.Facts()
	if facts.Backend != "namespace" {
		t.Errorf("backend %q", facts.Backend)
	}
	degraded := map[string]bool{}
	for _, row := range facts.Rules {
		if strings.Contains(row.Mechanism, "Landlock domain") {
			t.Errorf("%+v", row)
		}
		degraded[row.Name] = row.State == "degraded" && row.Detail != ""
	}
	k := s.kernel()
	if got := strings.Join(k.weakened(), " "); got != "programs devices proc" || !degraded["programs"] || !degraded["devices"] || !degraded["proc"] {
		t.Errorf("weakened: %s, degraded: %v", got, degraded)
	}
	if refused := k.without().refusal(); refused == nil || refused.Details["rule"] != "programs" || refused.Details["setting"] != "sandbox.accept" ||
		!strings.Contains(refused.Hint, `["devices", "proc", "programs"]`) {
		t.Errorf("nobody accepted that: %v", refused)
	}
	if k.ABI = 1; len(k.weakened()) > 0 || k.without().refusal() != nil {
		t.Errorf("with Landlock: %v", k.weakened())
	}
}

// §10.5: a step that fails ends the jail before the command, and its place is named.
func Test_10_5_a_jail_that_cannot_be_built(t *testing.T) {
	s := spacedSystem(t, nil)
	land := filepath.Join(t.TempDir(), "land")
	for name, c := range map[string]struct {
		spoil func() error
		says  string
	}{
		"it went away":     {func() error { return os.Remove(land) }, "open " + land + ": no such file"},
		"it was replaced":  {func() error { return os.Rename(land, land+".old") }, "replaced"},
		"it is a link now": {func() error { return os.Rename(land, land+".link") }, "replaced"},
		"nothing":          {func() error { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(land, 0o700); err != nil {
				t.Fatal(err)
			}
			box, refused := s.Prepare(&Spec{Program: Program{Name: "true", Path: "/bin/true"}, Write: []string{land}})
			if refused != nil {
				t.Fatal(refused)
			}
			defer box.Close()
			if err := c.spoil(); err != nil {
				t.Fatal(err)
			}
			switch name {
			case "it was replaced":
				if err := os.Mkdir(land, 0o700); err != nil {
					t.Fatal(err)
				}
			case "it is a link now":
				if err := os.Symlink("land.link", land); err != nil {
					t.Fatal(err)
				}
				defer os.Remove(land)
			}
			_, refused = box.Run(t.Context())
			if c.says == "" && refused != nil || c.says != "" && (refused == nil || refused.Details["rule"] != "jail" || !strings.Contains(refused.Message, c.says)) {
				t.Errorf("%v", refused)
			}
		})
	}
}

// §10.2: the layout takes each place once, with what is granted above it, and keeps the links that lead there.
func Test_10_2_layout(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a/in", "b"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "a", "loop": "loop", "up": "a/../b"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	l := newLayout()
	for at, rights := range map[string]uint64{"link/in": rightsRead, "a": rightsWrite, "up": rightsExec} {
		if err := l.add(grant{path: filepath.Join(root, at), rights: rights}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.add(grant{path: filepath.Join(root, "loop"), rights: rightsRead}, false); err == nil {
		t.Error("a link to itself leads somewhere")
	}
	if err := l.add(grant{path: root, id: identity{1, 1}}, false); err == nil {
		t.Error("a replaced path was taken")
	}
	l.finish(0)
	attributes := map[string]uint64{}
	for _, s := range l.ordered {
		attributes[strings.TrimPrefix(s.path, root)] = s.attributes(0)
	}
	const always = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if len(attributes) != 2 || attributes["/a"] != always|unix.MOUNT_ATTR_NOEXEC || attributes["/b"] != always|unix.MOUNT_ATTR_RDONLY {
		t.Errorf("%x", attributes) // what lies in a writable tree is part of it
	}
	if l.links[filepath.Join(root, "link")] != "a" || l.links[filepath.Join(root, "up")] != "a/../b" {
		t.Errorf("%v", l.links)
	}
}
