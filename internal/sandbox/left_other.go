//go:build unix && !linux

package sandbox

import "io/fs"

// sweepSlot: there are no slots here.
func sweepSlot(string, fs.DirEntry) {}
