//go:build unix

package stamp

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hcpx/internal/protocol"
)

// later is a clock for which a file written just now is old.
func later() time.Time { return time.Now().Add(time.Hour) }

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func of(t *testing.T, path string, now time.Time) protocol.FileStamp {
	t.Helper()
	s, err := Of(path, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func same(t *testing.T, path string, s protocol.FileStamp) bool {
	t.Helper()
	ok, err := Same(path, s)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func Test_2_4_UnchangedIsSameByStatAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "one", 0o644)
	s := of(t, path, later())
	if s.Young {
		t.Fatal("an old file is young")
	}
	s.SHA256 = "never compared"
	if !same(t, path, s) {
		t.Error("an unchanged file was hashed")
	}
}

func Test_2_4_OnlyWhatChangedIsHashed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "one", 0o644)
	s := of(t, path, later())
	if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if !same(t, path, s) {
		t.Error("touched, same content: not the same")
	}
	write(t, path, "two", 0o644)
	if same(t, path, s) {
		t.Error("other content of the same size is the same")
	}
	write(t, path, "longer", 0o644)
	if same(t, path, s) {
		t.Error("longer content is the same")
	}
}

// A change that hides behind an equal stat is found, because a young file is hashed each time.
func Test_2_4_YoungFilesAreAlwaysHashed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "one", 0o644)
	s := of(t, path, time.Now())
	if !s.Young {
		t.Fatal("a file of this second is not young")
	}
	if !same(t, path, s) {
		t.Error("unchanged young file is not the same")
	}
	write(t, path, "two", 0o644)
	forged := of(t, path, later())
	forged.SHA256, forged.Young = s.SHA256, true
	if same(t, path, forged) {
		t.Error("the stat was believed")
	}
	if s := of(t, path, time.Unix(0, 0)); !s.Young {
		t.Error("a file from the future is not young")
	}
}

func Test_2_4_ModeCountsAsFarAsItActs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "one", 0o755)
	s := of(t, path, later())
	for mode, want := range map[os.FileMode]bool{0o700: true, 0o600: false, 0o755 | os.ModeSetuid: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got := same(t, path, s); got != want {
			t.Errorf("mode %v: same = %v", mode, got)
		}
	}
}

func TestOnlyRegularFilesHaveAStamp(t *testing.T) {
	dir := t.TempDir()
	file, link, fifo := filepath.Join(dir, "f"), filepath.Join(dir, "l"), filepath.Join(dir, "p")
	write(t, file, "one", 0o644)
	if err := os.Symlink("f", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s := of(t, file, later())
	for _, path := range []string{dir, link, fifo} {
		if _, err := Of(path, later()); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
		if same(t, path, s) {
			t.Errorf("%s is the same", filepath.Base(path))
		}
	}
	if same(t, filepath.Join(dir, "none"), s) {
		t.Error("a missing file is the same")
	}
	if _, err := Of(filepath.Join(dir, "none"), later()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chtimes(dir, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	s, err := OfDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "new")
	write(t, file, "", 0o644)
	if now, err := OfDir(dir); err != nil || now == s {
		t.Errorf("a new entry: %v %v", now, err)
	}
	if _, err := OfDir(file); err == nil {
		t.Error("a file has a directory's stamp")
	}
}
