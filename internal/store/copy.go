package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hcpx/internal/disk"
)

// copyTree copies a pack exactly, but read-only: directories 0755, files 0444 or 0555; each file and
// directory is fsynced. Links are copied as links; anything else is refused.
func copyTree(dir string, src fs.FS) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	var dirs []string
	err = fs.WalkDir(src, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, path)
			if path == "." {
				return nil
			}
			return root.Mkdir(path, 0o755)
		case d.Type() == fs.ModeSymlink:
			target, err := fs.ReadLink(src, path)
			if err != nil {
				return err
			}
			return root.Symlink(target, path)
		case d.Type().IsRegular():
			return copyFile(root, src, path)
		default:
			return fmt.Errorf("%s is neither a file nor a directory nor a link", path)
		}
	})
	for _, d := range dirs {
		if err == nil {
			err = errors.Join(root.Chmod(d, 0o755), disk.Sync(filepath.Join(dir, d)))
		}
	}
	return errors.Join(err, root.Close())
}

func copyFile(root *os.Root, src fs.FS, path string) error {
	in, err := src.Open(path)
	if err != nil {
		return err
	}
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, in.Close(), fmt.Errorf("%s is no regular file", path))
	}
	mode := fs.FileMode(0o444)
	if info.Mode()&0o111 != 0 {
		mode = 0o555
	}
	out, err := root.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, in.Close())
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = errors.Join(out.Chmod(mode), out.Sync())
	}
	return errors.Join(err, out.Close(), in.Close())
}
