package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
)

// swapped is a directory that is a link to another one in every second moment. The other holds what no run may see.
type swapped struct {
	t           *testing.T
	path, other string
	stop, done  chan struct{}
}

// swap exchanges path, as long as the test goes on, with a link to other, in one step of the kernel each time.
func swap(t *testing.T, path, other string) *swapped {
	t.Helper()
	s := &swapped{t: t, path: path, other: other, stop: make(chan struct{}), done: make(chan struct{})}
	link := path + ".link"
	must(t, os.Symlink(other, link))
	go func() {
		defer close(s.done)
		for {
			select {
			case <-s.stop:
				if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
					err = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
					if err != nil {
						t.Error(err)
					}
				}
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	return s
}

func (s *swapped) end() {
	close(s.stop)
	<-s.done
}

// control ends the swaps once somebody who looks by the path alone has met the other directory.
func (s *swapped) control(t *testing.T, met func() bool) {
	t.Helper()
	defer s.end()
	for end := time.Now().Add(20 * time.Second); !met(); {
		if time.Now().After(end) {
			t.Error("nothing was ever swapped, so this shows nothing")
			return
		}
	}
}

// tries is how often a run meets the swaps.
const tries = 30

// meet runs the Spec again and again. It says how often it ran and how often it was refused, and everything that the
// runs printed.
func meet(t *testing.T, box sandbox.Sandbox, spec func() *sandbox.Spec) (ran, refused int, said string) {
	t.Helper()
	var all strings.Builder
	for range tries {
		b, err := box.Prepare(spec())
		if err != nil {
			refused++
			known(t, err)
			continue
		}
		o, err := b.Run(context.Background())
		if err != nil {
			refused++
			known(t, err)
		} else {
			ran++
			all.Write(o.Stdout)
		}
		if err := b.Close(); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ELOOP) {
			t.Error(err)
		}
	}
	return ran, refused, all.String()
}

// known: a swap that was seen is a refusal in words, not a fault.
func known(t *testing.T, err *protocol.Error) {
	t.Helper()
	switch err.Code {
	case protocol.JailEscape, protocol.SandboxUnavailable, protocol.BinNotAllowed, protocol.InternalError:
	default:
		t.Error(err)
	}
}

// §10.2: a directory of the jail that becomes a link to another between the look and the run: what is granted is the
// directory, so that the run is refused or sees nothing of the other.
func Test_10_2_SwappedWhileItIsUsed(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		t.Run("a workspace or a land that is written", func(t *testing.T) { swappedTree(t, true) })
		t.Run("one that is read", func(t *testing.T) { swappedTree(t, false) })
	})
}

// everywhere is each posture, as root and as an ordinary user.
func everywhere(t *testing.T, do func(t *testing.T)) {
	redteamtest.Users(t, func(t *testing.T, _ string) {
		for _, p := range looked() {
			t.Run(p.name, do)
		}
	})
}

func swappedTree(t *testing.T, write bool) {
	t.Helper()
	s := newScene(t)
	must(t, os.WriteFile(s.land+"/secret", []byte("own\n"), 0o644))
	must(t, os.WriteFile(s.outside+"/secret", []byte("STOLEN\n"), 0o644))
	const script = "cat secret; cat \"$1\"/secret; echo x >\"$1\"/planted; echo x >planted; :"
	spec := func() *sandbox.Spec {
		spec := s.spec("")
		spec.Program, spec.Args = tool(t, "sh"), []string{"-c", script, "sh", s.land}
		spec.Uses, spec.Read, spec.Write, spec.Dir = []sandbox.Program{tool(t, "cat")}, []string{s.land}, nil, s.land
		if write {
			spec.Write = []string{s.land}
		}
		return spec
	}
	w := swap(t, s.land, s.outside)
	ran, refused, said := meet(t, s.sandbox, spec)
	w.control(t, func() bool {
		text, err := os.ReadFile(s.land + "/secret")
		return err == nil && string(text) == "STOLEN\n"
	})
	if _, err := os.Stat(s.outside + "/planted"); err == nil || strings.Contains(said, "STOLEN") {
		t.Errorf("the other directory was reached: %v, %q", err, said)
	}
	if o := s.runs(t, spec()); !strings.Contains(o, "own") {
		t.Errorf("afterwards it does not run: %q", o)
	}
	t.Logf("%d ran, %d were refused", ran, refused)
}

// runs is what one run printed.
func (s *scene) runs(t *testing.T, spec *sandbox.Spec) string {
	t.Helper()
	b, refusal := s.sandbox.Prepare(spec)
	if refusal != nil {
		t.Fatal(refusal)
	}
	defer func() { must(t, b.Close()) }()
	o, refusal := b.Run(context.Background())
	if refusal != nil {
		t.Fatal(refusal)
	}
	return string(o.Stdout)
}

// §2.4, §10.2: the directory of a pack, whose programs may be executed.
func Test_10_2_SwappedPack(t *testing.T) { everywhere(t, swappedPack) }

func swappedPack(t *testing.T) {
	s := newScene(t)
	pack := s.land[:strings.LastIndexByte(s.land, '/')] + "/pack"
	for dir, text := range map[string]string{pack: "own", s.outside: "STOLEN"} {
		must(t, os.MkdirAll(dir+"/bin", 0o755))
		must(t, os.WriteFile(dir+"/bin/x", []byte("#!/bin/sh\necho "+text+"\n"), 0o755))
	}
	spec := func() *sandbox.Spec {
		spec := s.spec("")
		spec.Program, spec.Args, spec.Uses = sandbox.Program{Name: "x", Path: pack + "/bin/x"}, nil, []sandbox.Program{tool(t, "sh")}
		spec.Read, spec.Exec, spec.Write, spec.Dir = []string{pack}, []string{pack}, nil, ""
		return spec
	}
	w := swap(t, pack, s.outside)
	ran, refused, said := meet(t, s.sandbox, spec)
	w.control(t, func() bool {
		text, err := exec.Command(pack + "/bin/x").Output()
		return err == nil && strings.Contains(string(text), "STOLEN")
	})
	if strings.Contains(said, "STOLEN") {
		t.Errorf("another program ran: %q", said)
	}
	if o := s.runs(t, spec()); o != "own\n" {
		t.Errorf("afterwards it does not run: %q", o)
	}
	t.Logf("%d ran, %d were refused", ran, refused)
}

// §10.2, §11.3: the directory of private directories: nothing of the other is given to a run, and nothing in it removed.
func Test_10_2_SwappedScratch(t *testing.T) { everywhere(t, swappedScratch) }

func swappedScratch(t *testing.T) {
	s := newScene(t)
	scratch := s.land[:strings.LastIndexByte(s.land, '/')] + "/scratch"
	for _, n := range []string{"/0", "/1"} {
		for _, part := range []string{"home", "tmp", "bin"} {
			must(t, os.MkdirAll(s.outside+n+"/"+part, 0o700))
		}
		must(t, os.Chmod(s.outside+n, 0o700))
		must(t, os.WriteFile(s.outside+n+"/home/secret", []byte("STOLEN\n"), 0o644))
	}
	spec := func() *sandbox.Spec {
		spec := s.spec("")
		spec.Program, spec.Args = tool(t, "sh"), []string{"-c", "echo ran; cat $HOME/secret; echo x >$HOME/planted; :"}
		spec.Uses = []sandbox.Program{tool(t, "cat")}
		return spec
	}
	if o := s.runs(t, spec()); o != "ran\n" {
		t.Fatalf("before: %q", o)
	}
	w := swap(t, scratch, s.outside)
	ran, refused, said := meet(t, s.sandbox, spec)
	w.control(t, func() bool {
		text, err := os.ReadFile(scratch + "/0/home/secret")
		return err == nil && string(text) == "STOLEN\n"
	})
	if strings.Contains(said, "STOLEN") {
		t.Errorf("the other directory was reached: %q", said)
	}
	for _, n := range []string{"/0", "/1"} {
		if _, err := os.Stat(s.outside + n + "/home/planted"); err == nil {
			t.Error("something was written there")
		}
		if _, err := os.Stat(s.outside + n + "/home/secret"); err != nil {
			t.Error("something was removed there:", err)
		}
	}
	if o := s.runs(t, spec()); o != "ran\n" {
		t.Errorf("afterwards it does not run: %q", o)
	}
	t.Logf("%d ran, %d were refused", ran, refused)
}
