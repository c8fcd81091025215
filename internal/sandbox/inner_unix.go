//go:build unix && !linux

package sandbox

import "path"

// Inner runs the stage of the sandbox that this program was started again for, and answers its exit code; ok is
// false for a start of any other kind. Whoever makes a System calls it first. The canary is the only stage here,
// and its name stands in the path by which it was started.
func Inner(argv []string) (code int, ok bool) {
	if len(argv) > 1 && path.Base(argv[0]) == CanaryName {
		return canaryMain(argv[1:]), true
	}
	return 0, false
}
