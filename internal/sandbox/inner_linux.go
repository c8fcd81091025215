package sandbox

// Inner runs the stage of the sandbox that this program was started again for, and answers its exit code; ok is
// false for a start of any other kind. Whoever makes a System calls it first: before it the process has read
// nothing and started nothing.
func Inner(argv []string) (code int, ok bool) {
	if len(argv) > 1 && argv[0] == CanaryName {
		return canaryMain(argv[1:]), true
	}
	return 0, false
}
