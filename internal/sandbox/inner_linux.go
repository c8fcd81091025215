package sandbox

import "runtime"

// stageNamespace is argv[0] of this program when it builds a jail of namespaces and starts the command in it.
const stageNamespace = "hcpx: namespace"

// Inner runs the stage of the sandbox that this program was started again for, and answers its exit code; ok is
// false for a start of any other kind. Whoever makes a System calls it first: before it the process has read
// nothing and started nothing. A stage that nobody of ours started gets no job and ends with a code.
func Inner(argv []string) (code int, ok bool) {
	if len(argv) > 1 && argv[0] == CanaryName {
		return canaryMain(argv[1:]), true
	}
	if len(argv) != 1 || len(argv[0]) < 6 || argv[0][:6] != "hcpx: " {
		return 0, false
	}
	switch argv[0] {
	case stageNamespace:
		runtime.LockOSThread()
		return namespaceStage(), true
	}
	return 0, false
}
