package audit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Logs and file systems as they are, not as a test makes them.

// systemChild is what a process does in them.
func systemChild(what, dir string) error {
	switch what {
	case "journal":
		return journaled(dir)
	case "peak":
		return errors.Join(lookThrough(dir), sayPeak())
	}
	return fullTmpfs(dir)
}

// until waits for something that another process does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 500 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not come", what)
}

func Test_15_4_HeadsInARealSyslog(t *testing.T) {
	daemon, err := exec.LookPath("/usr/sbin/rsyslogd")
	if err != nil {
		t.Skip("rsyslogd is not installed")
	}
	dir, err := os.MkdirTemp("", "syslog")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, file := filepath.Join(dir, "log"), filepath.Join(dir, "auth.log")
	conf := fmt.Sprintf("global(workDirectory=%q)\nmodule(load=\"imuxsock\" SysSock.Use=\"off\")\ninput(type=\"imuxsock\" Socket=%q)\nauthpriv.notice action(type=\"omfile\" file=%q)\n", dir, socket, file)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(daemon, "-n", "-f", filepath.Join(dir, "conf"), "-i", filepath.Join(dir, "pid"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	until(t, "the socket", func() bool { return exists(socket) })
	cfg := config(t.TempDir())
	cfg.Anchor, cfg.Socket = AnchorSyslog, socket
	change(t, cfg, 7)
	var text []byte
	until(t, "the last head", func() bool {
		text, _ = os.ReadFile(file) // not there yet
		return strings.Count(string(text), "\n") == 7
	})
	if r := against(t, cfg, string(text)); !r.OK || r.Anchors.Heads != 7 || r.Anchors.Newest != 7 || !strings.Contains(string(text), " hcpx-audit: hcpx-audit-head ") {
		t.Errorf("%+v %+v\n%s", r, r.Anchors, text)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// apart runs a script in namespaces of its own, where it may mount; $0 is this test's program.
func apart(t *testing.T, dir, script string) {
	t.Helper()
	flags := "-Urm"
	if os.Geteuid() == 0 {
		flags = "-m"
	}
	if err := exec.Command("unshare", flags, "true").Run(); err != nil {
		t.Skipf("there is no unshare, or it may make no namespace: %v", err)
	}
	cmd := process(t, dir)
	cmd.Path, cmd.Args = "/usr/bin/unshare", []string{"unshare", flags, "sh", "-euc", script, cmd.Path}
	run(t, cmd)
}

// journalOf is what the script leaves of journald's log.
func journalOf(dir string) string { return filepath.Join(dir, "journal") }

// journaled appends to an audit whose heads go to journald, where it always listens.
func journaled(dir string) error {
	cfg := config(dir)
	cfg.Anchor = AnchorJournald
	l := Open(cfg)
	for i := range 6 {
		if err := l.Append(Entry{Kind: Change, ID: fmt.Sprint(i), Act: "grant"}, i%2 == 0); err != nil {
			return err
		}
	}
	return errors.Join(l.Close(), Look(cfg))
}

func Test_15_4_HeadsInARealJournal(t *testing.T) {
	for _, path := range []string{"/lib/systemd/systemd-journald", "/usr/bin/journalctl", "/etc/machine-id"} {
		if !exists(path) {
			t.Skip(path + " is missing: systemd is not installed")
		}
	}
	dir := t.TempDir()
	apart(t, dir, `mount -t tmpfs none /run
mount -t tmpfs none /var/log
mkdir -p /run/systemd/journal /run/log/journal
/lib/systemd/systemd-journald 2>/dev/null &
daemon=$!
trap 'kill $daemon' EXIT
n=0
until [ -S /run/systemd/journal/io.systemd.journal ]; do n=$((n+1)); [ $n -lt 500 ]; sleep 0.01; done
"$0" journal
journalctl --sync
journalctl -q -o cat -t hcpx-audit >"$AUDIT_CHILD/journal"
journalctl -q -o json -t hcpx-audit >"$AUDIT_CHILD/journal.json"
journalctl -q -o short -t hcpx-audit >"$AUDIT_CHILD/journal.short"
`)
	for _, form := range []string{"", ".json", ".short"} {
		text, err := os.ReadFile(journalOf(dir) + form)
		if err != nil {
			t.Fatal(err)
		}
		if r := against(t, config(dir), string(text)); !r.OK || r.Anchors.Heads != 6 || r.Anchors.Newest != 6 {
			t.Errorf("%s: %+v %+v\n%s", form, r, r.Anchors, text)
		}
	}
}

// fullTmpfs fills a small file system that really is full: with pages left for a part of an entry, and for none, and
// without a name left for the next segment.
func fullTmpfs(dir string) error {
	for name, options := range map[string]string{"pages": "size=64k", "names": "size=1m,nr_inodes=6"} {
		cfg := config(filepath.Join(dir, name))
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			return err
		}
		if err := syscall.Mount("none", cfg.Dir, "tmpfs", 0, options); err != nil {
			return fmt.Errorf("mount: %w", err)
		}
		var total uint64
		for round := range 3 {
			done, full := grow(cfg, 1000)
			total += done
			if !errors.Is(full, syscall.ENOSPC) {
				return fmt.Errorf("%s, round %d: not full: %w", name, round, full)
			}
			if again, _ := grow(cfg, 1); again != 0 && name == "names" {
				return errors.New("recorded on a full disk")
			} else {
				total += again // a shorter line may still fit
			}
			if err := errors.Join(stands(cfg, total), Look(cfg)); err != nil {
				return fmt.Errorf("%s, round %d: %w", name, round, err)
			}
			larger := strings.NewReplacer("64k", fmt.Sprintf("%dk", 96+32*round), "=6", fmt.Sprintf("=%d", 8+2*round)).Replace(options)
			if err := syscall.Mount("none", cfg.Dir, "tmpfs", syscall.MS_REMOUNT, larger); err != nil {
				return fmt.Errorf("remount: %w", err)
			}
		}
		if err := syscall.Mount("none", cfg.Dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("remount: %w", err)
		}
		if _, err := grow(cfg, 1); !errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("recorded on a read-only disk: %w", err)
		}
		if err := stands(cfg, total); err != nil || Look(cfg) == nil {
			return fmt.Errorf("read-only: %w", err)
		}
	}
	return nil
}

func Test_15_4_AFullFileSystemRefusesAndLosesNothing(t *testing.T) {
	apart(t, t.TempDir(), `exec "$0" tmpfs`)
}

// BenchmarkVerify takes the same for a million.
func Test_15_4_ReadingALongAuditTakesNoMoreMemory(t *testing.T) {
	peak := func(n int) int64 {
		dir := t.TempDir()
		cfg := config(dir)
		cfg.SegmentBytes = 0
		long(t, cfg, n)
		out, err := process(t, dir, "peak").Output()
		if err != nil {
			t.Fatal(err)
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return kib
	}
	short, long := peak(8_000), peak(24_000) // 3.5 and 10 MB on disk, both longer than what the collector lets gather
	t.Logf("%d KiB for a short one, %d for a long one", short, long)
	if long-short > 4<<10 {
		t.Errorf("%d KiB for a short one, %d for a long one", short, long)
	}
}

// sayPeak prints the most memory that this process had, in KiB. What the kernel tells a parent of its child would not do: a
// process begins with the most that the one had which started it.
func sayPeak() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, _, ok := strings.Cut(after, "kB")
	if !ok {
		return errors.New("no VmHWM")
	}
	fmt.Println(strings.TrimSpace(kib))
	return nil
}
