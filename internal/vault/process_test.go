//go:build unix

package vault_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hcpx/internal/vault"
)

var kills = flag.Int("kills", 30, "how many processes are killed while they write a secret")

const childVar = "VAULT_CHILD"

// TestMain lets the test binary stand for another process that works on the same secrets.
func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		if os.Args[1] == "hold" {
			holder()
		} else if os.Args[1] == "full" {
			fullDisk(os.Args[2])
		} else if err := act(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// act does one thing in a home: home, bus, what, name, value, and the number of the point at which to die (0 = never).
func act(args []string) error {
	die, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	n := 0
	s := vault.OpenFaulty(options(args[0], args[1]), func(string) error {
		if n++; n == die {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	})
	return do(s, args[2], args[3], args[4])
}

func do(s vault.Store, what, name, value string) error {
	ctx, cancel := deadline()
	defer cancel()
	switch what {
	case "set":
		if err := s.Set(ctx, name, []byte(value)); err != nil {
			return err
		}
	case "delete":
		if err := s.Delete(ctx, name); err != nil {
			return err
		}
	case "add": // reads, adds a letter and writes, which only the lock of the name makes one act
		unlock, err := s.Lock(ctx, name)
		if err != nil {
			return err
		}
		defer unlock()
		old, _, err := s.Get(ctx, name)
		if err != nil {
			return err
		}
		if err := s.Set(ctx, name, append(old, value...)); err != nil {
			return err
		}
	default:
		return errors.New("unknown act " + what)
	}
	return nil
}

// holder is another process: with a word it conceals itself, then it waits for the end of its input.
func holder() {
	if len(os.Args) > 2 && os.Args[2] == "conceal" {
		if err := vault.Conceal(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func options(root, bus string) vault.Options {
	return vault.Options{Dir: filepath.Join(root, "home", "secrets"), Config: filepath.Join(root, "config"), Bus: bus}
}

// child is this test binary as another process, where every user may start it.
func child(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), childVar+"=1")
	c.Stderr = os.Stderr
	return c
}

// run starts a program and ends it with the test.
func run(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(c) })
}

func stop(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// killed runs an act in a process that dies at a point and says whether it did.
func killed(t *testing.T, die int, args ...string) bool {
	t.Helper()
	err := child(t, append(args, strconv.Itoa(die))...).Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatal(args, err)
	}
	return false
}

// have is the value of a name, "" when there is none.
func have(t *testing.T, s vault.Store, name string) string {
	t.Helper()
	value, found, err := s.Get(t.Context(), name)
	if err != nil {
		t.Fatal(name, err, err.Hint)
	}
	if found != (len(value) > 0) {
		t.Fatalf("%s: found %v with %d bytes", name, found, len(value))
	}
	return string(value)
}

// deaths kills an act at each of its points. It must leave the old or the new value, and all others. It is void when fell says
// that the keyring itself has ended with the client that was killed: that shows nothing of the vault.
func deaths(t *testing.T, bus, what, old string, fell func() bool) (void bool) {
	want := map[string]bool{old: true}
	value := ""
	if what == "set" {
		value = "the-new-value"
	}
	want[value] = true
	seen := map[string]bool{}
	for point := 1; ; point++ {
		root := t.TempDir()
		s := vault.Open(options(root, bus))
		if old != "" {
			set(t, s, "other", "the-other-value")
			set(t, s, "name", old)
		}
		if !killed(t, point, root, bus, what, "name", value) {
			if point < 3 {
				t.Errorf("only %d points", point-1)
			}
			break
		}
		if _, _, err := s.Get(t.Context(), "name"); err != nil && fell() {
			t.Logf("void: at point %d the keyring ended: %v", point, err)
			return true
		}
		got := have(t, s, "name")
		if !want[got] {
			t.Fatalf("point %d left %q", point, got)
		}
		seen[got] = true
		if old != "" && have(t, s, "other") != "the-other-value" {
			t.Fatalf("point %d lost another name", point)
		}
		set(t, s, "next", "written after it")
		set(t, s, "name", "written again")
		if have(t, s, "next")+have(t, s, "name") != "written after itwritten again" {
			t.Fatalf("point %d: what was written afterwards is not there", point)
		}
		for _, dir := range []string{"home/secrets", "config"} {
			if left, _ := filepath.Glob(filepath.Join(root, dir, "*.new")); len(left) > 0 {
				t.Errorf("point %d: %q are left", point, left)
			}
		}
	}
	if len(seen) != len(want) {
		t.Errorf("the points prove nothing: seen %v", seen)
	}
	return false
}

func Test_8_3_KilledAtEveryPoint(t *testing.T) {
	for _, c := range []struct{ name, what, old string }{
		{"first", "set", ""}, {"replace", "set", "the-old-value"}, {"delete", "delete", "the-old-value"},
	} {
		t.Run(c.name, func(t *testing.T) { deaths(t, "", c.what, c.old, func() bool { return false }) })
	}
}

func Test_8_3_KilledAtRandomMoments(t *testing.T) {
	root := t.TempDir()
	s := vault.Open(options(root, ""))
	set(t, s, "other", "the-other-value")
	values := []string{"first-value", strings.Repeat("a long value ", 4000)}
	set(t, s, "name", values[0])
	for i := range *kills {
		c := child(t, root, "", "set", "name", values[i%2], "0")
		c.Stderr = nil
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // it has begun
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(12_000)) * time.Microsecond) // the moment of death is what is tried
		stop(c)
		if got := have(t, s, "name"); got != values[0] && got != values[1] {
			t.Fatalf("%d bytes of neither value", len(got))
		}
		if have(t, s, "other") != "the-other-value" {
			t.Fatal("another name is lost")
		}
	}
}

// crowd runs n processes at once, each with its own name and value.
func crowd(t *testing.T, n int, args func(i int) []string) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		c := child(t, append(args(i), "0")...)
		var said bytes.Buffer
		c.Stderr = &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := c.Wait(); err != nil {
				t.Error(err, said.String())
			}
		})
	}
	all.Wait()
}

func Test_8_3_50ProcessesWriteAtOnce(t *testing.T) { fifty(t, "") }

func fifty(t *testing.T, bus string) {
	n := 50
	if testing.Short() {
		n = 12
	}
	root := t.TempDir() // the key and the vault are made by one of them
	crowd(t, n, func(i int) []string {
		return []string{root, bus, "set", fmt.Sprint("name/", i), fmt.Sprint("the value of ", i)}
	})
	s := vault.Open(options(root, bus))
	for i := range n {
		if got := have(t, s, fmt.Sprint("name/", i)); got != fmt.Sprint("the value of ", i) {
			t.Errorf("name %d is %q", i, got)
		}
	}
	crowd(t, n, func(int) []string { return []string{root, bus, "add", "name/0", "+"} })
	if got, want := have(t, s, "name/0"), "the value of 0"+strings.Repeat("+", n); got != want {
		t.Errorf("50 times one more under the lock: %q", got)
	}
}

// §8.4: a lock is free when its holder dies.
func Test_8_4_ALockDiesWithItsHolder(t *testing.T) {
	root := t.TempDir()
	if !killed(t, 1, root, "", "add", "name", "x") { // dies at the first write, with the lock
		t.Fatal("it did not die")
	}
	unlock, err := vault.Open(options(root, "")).Lock(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// plain is a user without rights: this one, or nobody's when this is root.
func plain() int {
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return 65534
}

func as(uid int) *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
}

// everyones is a directory that any user can reach.
func everyones(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vault-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// everyonesChild is child where another user may start it.
func everyonesChild(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := child(t, args...)
	in, err := os.Open(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	c.Path = filepath.Join(everyones(t), "child")
	out, err := os.OpenFile(c.Path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}
