//go:build linux || darwin

package cli

import "golang.org/x/sys/unix"

// unseen turns the echo of a terminal off, so that it is off before anybody is asked.
func unseen(fd int) error {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	t.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, setTermios, t)
}
