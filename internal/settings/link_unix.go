//go:build unix

package settings

import "syscall"

// noFollow opens no link.
const noFollow = syscall.O_NOFOLLOW
