package learn

import (
	"path/filepath"
	"strings"
)

// leads is where the links of a path lead, as far as it exists.
func leads(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(filepath.Clean(path))
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return filepath.Join(real, filepath.Base(filepath.Clean(path)))
	}
	return filepath.Clean(path)
}

// within says whether path is dir or lies below it; nothing lies in "".
func within(path, dir string) bool {
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}

// own says whether a path is another one for every process.
func own(path string) bool {
	return within(path, "/proc") || path == "/dev/tty" || strings.HasPrefix(path, "/dev/fd") || strings.HasPrefix(path, "/dev/std")
}
