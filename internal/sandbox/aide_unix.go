//go:build unix && !linux

package sandbox

import "syscall"

func aideAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
