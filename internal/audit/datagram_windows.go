package audit

import "errors"

// No log here is reached by a local socket.
const (
	journaldSocket = ""
	syslogSocket   = ""
)

type datagram struct{}

func dialDatagram(string) (*datagram, error) {
	return nil, errors.New("this system has neither journald nor syslog")
}

func (*datagram) send([]byte) error { return errors.New("this system has neither journald nor syslog") }
func (*datagram) close()            {}
