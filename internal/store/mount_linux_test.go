package store

import "syscall"

func mountSmall(dir string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=700")
}
