//go:build !linux

package session

// readProcess reads nothing: only Linux shows a process's environment as a file, so that elsewhere a process is
// known by its own alone (§9.3).
func readProcess(_ string, buf []byte) []byte { return buf }
