package learn

import (
	"os"
	"path/filepath"
	"testing"
)

func putProgram(t *testing.T, dir, name string) Program {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	return Program{Path: path, Real: leads(path), Argv: []string{name}}
}
