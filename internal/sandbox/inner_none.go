//go:build !unix

package sandbox

// Inner runs the stage of the sandbox that this program was started again for. This system has none.
func Inner([]string) (code int, ok bool) { return 0, false }
