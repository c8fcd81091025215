//go:build unix

package audit

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// §15.4: a pipe in the place of a file of the audit is waited for by nobody, and a link is not followed.
func Test_15_4_WhatIsNoFileIsNotRead(t *testing.T) {
	for name, lay := range map[string]func(path string) error{
		"fifo": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link": func(path string) error { return os.Symlink("/etc/passwd", path) },
	} {
		for _, file := range []string{"head", "00000001.ndjson"} {
			cfg := Config{Dir: filepath.Join(t.TempDir(), "audit"), KeyPath: filepath.Join(t.TempDir(), "key"), Now: time.Now}
			log := Open(cfg)
			if err := log.Append(Entry{Kind: Denial, ID: "a"}, true); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(cfg.Dir, file)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := lay(path); err != nil {
				t.Fatal(err)
			}
			report, err := Verify(cfg)
			if err == nil && report.OK {
				t.Errorf("%s as a %s verifies", file, name)
			}
			if err != nil && strings.Contains(err.Error(), "root:") {
				t.Errorf("%s as a %s: what a link leads to is told: %v", file, name, err)
			}
		}
	}
}
