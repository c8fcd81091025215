//go:build unix

package audit

import (
	"errors"
	"syscall"
)

// The sockets of the system's log.
const (
	journaldSocket = "/run/systemd/journal/socket"
	syslogSocket   = "/dev/log"
)

// anchorPatience is how long a log that takes nothing is waited for, in seconds: every append waits with it.
const anchorPatience = 2

// datagram is a connected socket of a local log.
type datagram struct{ fd int }

// dialDatagram connects without sending anything.
func dialDatagram(path string) (*datagram, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	d := &datagram{fd}
	err = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &syscall.Timeval{Sec: anchorPatience})
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// send hands over one message, whole or not at all.
func (d *datagram) send(text []byte) error {
	for {
		_, err := syscall.Write(d.fd, text)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// close gives the socket back; nothing is buffered in it that could be lost.
func (d *datagram) close() { _ = syscall.Close(d.fd) }
