package sandbox

import "golang.org/x/sys/unix"

func bootSession() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }
