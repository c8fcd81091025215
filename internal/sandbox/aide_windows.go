package sandbox

import "syscall"

func aideAttr() *syscall.SysProcAttr { return ownGroup() }
