package redteamtest

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// Attack is one probe; nil says that it worked.
type Attack func(args []string) error

// Attacker runs one attack when the process was started for it, and does not return then. Call it first in
// TestMain. Exit 0 says that the attack worked; else the reason is on stderr and the exit code is 1.
func Attacker() {
	if len(os.Args) < 3 || os.Args[1] != Arg {
		return
	}
	attack, ok := attacks()[os.Args[2]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such attack")
		os.Exit(2)
	}
	runtime.LockOSThread()
	if err := attack(os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	syscall.Exit(0) // os.Exit would wait under the race detector
}
