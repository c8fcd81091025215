package learn

import "golang.org/x/sys/unix"

const machine = unix.AUDIT_ARCH_AARCH64

// olderCalls are those that newer machines no longer have.
func olderCalls() map[int32]call { return nil }
