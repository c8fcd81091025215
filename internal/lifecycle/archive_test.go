package lifecycle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"hcpx/internal/pack"
)

// FuzzUnpack: whatever the bytes, nothing is written beside the root, no file passes the limits, and
// nothing but files, directories and links comes out.
func FuzzUnpack(f *testing.F) {
	w := func(path string) []byte {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	f.Add(w(archiveOf(f, true, member{name: "a/b", body: "x", mode: 0o644}, member{name: "l", link: "a/b", mode: 0o777})), true)
	f.Add(w(archiveOf(f, false, member{name: "../x", body: "x", mode: 0o644})), false)
	f.Fuzz(func(t *testing.T, archive []byte, tar bool) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "root")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		name, unpack := filepath.Join(t.TempDir(), "a"), unpackZip
		if tar {
			unpack = unpackTar
		}
		write(t, name, string(archive), 0o600)
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		const most = 1 << 16
		_ = unpack(name, newExtraction(root, pack.Limits{Files: 16, Bytes: most})) // refusing is right too
		if err := root.Close(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(outer)
		if err != nil || len(entries) != 1 {
			t.Fatalf("beside the root: %v %v", entries, err)
		}
		var sum int64
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Type() == fs.ModeSymlink {
				return err
			}
			info, err := d.Info()
			if err == nil && !info.Mode().IsRegular() {
				err = errors.New("an irregular file")
			}
			if err == nil {
				sum += info.Size()
			}
			return err
		})
		if err != nil || sum > most+1 {
			t.Fatalf("%v, %d bytes", err, sum)
		}
	})
}

func archiveOf(t testing.TB, tar bool, members ...member) string {
	if tar {
		return tgz(t, members)
	}
	return zipped(t, members)
}
