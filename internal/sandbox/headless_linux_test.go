package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// headless lets the first thread of this process end, and goes on with another one. /proc shows such a process as
// a zombie. The deaf hear no SIGTERM, and do not die with their parent.
func headless(then func() error) error {
	signal.Ignore(unix.SIGTERM, unix.SIGHUP)
	runtime.LockOSThread()
	for end := time.Now().Add(5 * time.Second); unix.Gettid() != unix.Getpid(); runtime.LockOSThread() {
		if time.Now().After(end) {
			return errors.New("this goroutine does not come to the first thread")
		}
		runtime.UnlockOSThread()
		time.Sleep(time.Millisecond)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0); err != nil {
		return err
	}
	go func() {
		if err := then(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			syscall.Exit(1)
		}
		syscall.Exit(0)
	}()
	fmt.Println("headless")
	_, _, no := syscall.Syscall(unix.SYS_EXIT, 0, 0, 0) // Go thinks of a call that lasts
	return no
}

// headlessVerbs are what a family does with such processes.
func headlessVerbs() map[string]func([]string) error {
	return map[string]func([]string) error{
		"headless": func([]string) error {
			_, _ = unix.Setsid() // where that is not refused, and it leads no group yet
			return headless(func() error { time.Sleep(time.Hour); return nil })
		},
		"headless-children": func(a []string) error { // the second argument is how long this one stays
			n, err := strconv.Atoi(a[0])
			if err != nil {
				return err
			}
			stay, err := time.ParseDuration(a[1])
			if err != nil {
				return err
			}
			self, err := os.Executable()
			for range n {
				c := exec.Command(self, familyArg, "headless", a[2])
				out, broken := c.StdoutPipe()
				if err = errors.Join(err, broken, c.Start()); err != nil {
					return err
				}
				if line, err := bufio.NewReader(out).ReadString('\n'); line != "headless\n" {
					return fmt.Errorf("%q: %w", line, err)
				}
			}
			time.Sleep(stay)
			return err
		},
		"headless-memory": func(a []string) error {
			mib, err := strconv.Atoi(a[0])
			if err != nil {
				return err
			}
			return headless(func() error {
				time.Sleep(100 * time.Millisecond) // the first thread is dead before anything is taken
				all, err := touched(mib)
				time.Sleep(700 * time.Millisecond)
				runtime.KeepAlive(all)
				return err
			})
		},
	}
}

// inFamily is a Spec of a family, which is killed soon after its time is over.
func inFamily(t *testing.T, args ...string) *sandbox.Spec {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return &sandbox.Spec{Program: sandbox.Program{Name: "family", Path: self}, Args: append([]string{familyArg}, args...),
		Limits: sandbox.Limits{Wall: time.Minute, Grace: 100 * time.Millisecond}}
}

// everyPosture tests in each way in which a run is held, native-local too, as every user.
func everyPosture(t *testing.T, native bool, do func(t *testing.T, s *sandbox.System, native bool)) {
	redteamtest.Users(t, func(t *testing.T, place string) {
		for i, p := range append(looked(), bandPostures()...) {
			t.Run(p.name, func(t *testing.T) {
				p.options.Scratch = place + "/scratch" + strconv.Itoa(i)
				do(t, confining(t, p.options), false)
			})
		}
		if native {
			t.Run("native", func(t *testing.T) { do(t, sandbox.New(sandbox.Options{Scratch: place + "/scratch"}), true) })
		}
	})
}

// §6.9, §10.3: a process lives as long as one of its threads does, and is killed like any other.
func Test_6_9_first_thread_ends_first(t *testing.T) {
	everyPosture(t, true, func(t *testing.T, s *sandbox.System, native bool) {
		mark := "mark-" + strings.ReplaceAll(t.Name(), "/", "-")
		spec := inFamily(t, "headless", mark)
		spec.Native, spec.Limits.Wall = native, 700*time.Millisecond
		if o := sandboxtest.Exec(t, s, spec); !o.TimedOut || o.Signal != "SIGKILL" || string(o.Stdout) != "headless\n" {
			t.Errorf("the command: %+v\n%s", o, o.Stderr)
		}
		gone(t, familyArg, "headless", mark)
		spec = inFamily(t, "headless-children", "3", "0s", mark)
		spec.Native = native
		if o := sandboxtest.Exec(t, s, spec); o.Exit != 0 || o.TimedOut || o.Report.Killed != 3 {
			t.Errorf("what it left: %+v\n%s", o, o.Stderr)
		}
		gone(t, familyArg, "headless", mark)
	})
}

// §10.4: such processes count, and so does what they have.
func Test_10_4_first_thread_ends_first(t *testing.T) {
	everyPosture(t, false, func(t *testing.T, s *sandbox.System, _ bool) {
		for want, args := range map[string][]string{"memory": {"headless-memory", "300"}, "processes": {"headless-children", "12", "1s", "count"}} {
			spec := inFamily(t, args...)
			if o := sandboxtest.Exec(t, s, spec); o.Exit != 0 || o.Limit != "" {
				t.Errorf("%s, below it: %+v\n%s", want, o, o.Stderr)
			}
			spec = inFamily(t, args...)
			spec.Limits.Memory, spec.Limits.Processes = 150<<20, 36
			if o := sandboxtest.Exec(t, s, spec); o.Limit != want || o.TimedOut {
				t.Errorf("%s: %+v\n%s", want, o, o.Stderr)
			}
		}
		gone(t, familyArg, "headless", "count")
	})
}
