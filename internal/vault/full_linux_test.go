package vault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hcpx/internal/vault"
)

// fullDisk works on a file system of 256 KiB, and says what came of it.
func fullDisk(root string) {
	if err := onFullDisk(root); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
}

func onFullDisk(root string) error {
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=256k,mode=700"); err != nil {
		return fmt.Errorf("cannot mount: %w", err)
	}
	ctx, s := context.Background(), vault.Open(options(root, ""))
	value := func(i int) []byte { return []byte(strings.Repeat(fmt.Sprint(i%10), 20_000)) }
	n := 0
	for ; n < 100; n++ {
		err := s.Set(ctx, fmt.Sprint("name/", n), value(n))
		if err == nil {
			continue
		}
		if !strings.Contains(err.Message, "There is no space to write "+options(root, "").Dir) || !strings.HasPrefix(err.Hint, "df ") {
			return err
		}
		break
	}
	if n < 2 || n == 100 {
		return fmt.Errorf("it was full after %d", n)
	}
	for i := range n {
		if got, found, err := s.Get(ctx, fmt.Sprint("name/", i)); err != nil || !found || string(got) != string(value(i)) {
			return fmt.Errorf("name %d is lost: %v", i, err)
		}
	}
	if left, err := filepath.Glob(options(root, "").Dir + "/*.new"); err != nil || len(left) > 0 {
		return fmt.Errorf("%q are left", left)
	}
	if err := s.Delete(ctx, "name/0"); err != nil && !strings.Contains(err.Message, "no space") {
		return err
	}
	if err := syscall.Mount("none", root, "tmpfs", syscall.MS_REMOUNT, "size=4m"); err != nil {
		return err
	}
	if err := s.Set(ctx, fmt.Sprint("name/", n), value(n)); err != nil {
		return err
	}
	if err := syscall.Mount("none", root, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return err
	}
	err := s.Set(ctx, "name/1", value(2))
	got, _, again := s.Get(ctx, "name/1")
	if err == nil || !strings.Contains(err.Message, "read-only file system") || again != nil || string(got) != string(value(1)) {
		return fmt.Errorf("read-only: %v, %v", err, again)
	}
	return nil
}

// §8.3: a disk that is full, or that nobody may write, loses nothing.
func Test_8_3_AFullDisk(t *testing.T) {
	c := child(t, "full", t.TempDir())
	c.Stderr = nil
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil { // else Go may not map the child's user
		t.Fatal(err)
	}
	out, err := c.CombinedOutput()
	switch {
	case err != nil && (len(out) == 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC)) || strings.Contains(string(out), "cannot mount")):
		t.Skip("this user has no namespaces")
	case err != nil || string(out) != "held\n":
		t.Errorf("%v\n%s", err, out)
	}
}
