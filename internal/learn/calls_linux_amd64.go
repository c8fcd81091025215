package learn

import "golang.org/x/sys/unix"

const machine = unix.AUDIT_ARCH_X86_64

// olderCalls are those that newer machines no longer have.
func olderCalls() map[int32]call {
	return map[int32]call{
		unix.SYS_OPEN:    {kind: opens, path: 0, flags: 1, dir: atCwd},
		unix.SYS_CREAT:   {kind: creates, path: 0, dir: atCwd},
		unix.SYS_MKDIR:   {kind: makesDir, path: 0, dir: atCwd},
		unix.SYS_RMDIR:   {kind: removes, path: 0, dir: atCwd},
		unix.SYS_UNLINK:  {kind: unlinks, path: 0, dir: atCwd},
		unix.SYS_RENAME:  {kind: moves, path: 0, dir: atCwd, path2: 1, dir2: atCwd},
		unix.SYS_LINK:    {kind: links, path: 0, dir: atCwd, path2: 1, dir2: atCwd},
		unix.SYS_SYMLINK: {kind: makes, path: 1, dir: atCwd},
	}
}
