package store

import (
	"fmt"
	"os"
	"strings"
)

// Pulse differs once the state or an installed pack may have changed: two stats, for those who watch. What is not there
// is a pulse, too.
func (s *FS) Pulse() string {
	var b strings.Builder
	for _, path := range []string{s.path("state.json"), s.metaDir()} {
		if info, err := os.Lstat(path); err == nil {
			fmt.Fprintf(&b, "%d %d;", info.ModTime().UnixNano(), info.Size())
		} else {
			b.WriteString("-;")
		}
	}
	return b.String()
}
