package egress

import (
	"encoding/binary"
	"io"
	"net/netip"
)

// What the proxy knows of SOCKS5 (RFC 1928), without authentication.
const (
	socksVersion   = 5
	socksConnect   = 1
	socksV4        = 1
	socksName      = 3
	socksV6        = 4
	socksNoMethod  = 0xff
	socksForbidden = 2
	socksFailed    = 4
	socksCommand   = 7
)

// socksError is a client that speaks something else, and what it can be told.
type socksError struct{ reply []byte }

func (socksError) Error() string { return "no SOCKS5 request" }

// readSocks reads greeting and request, and answers the greeting. The first byte was the version.
func readSocks(c io.ReadWriter) (host string, port uint16, err error) {
	var buf [256]byte
	if _, err := io.ReadFull(c, buf[:2]); err != nil {
		return "", 0, err
	}
	methods := buf[:buf[1]]
	if _, err := io.ReadFull(c, methods); err != nil {
		return "", 0, err
	}
	method := byte(socksNoMethod)
	for _, m := range methods {
		if m == 0 {
			method = 0
		}
	}
	if method != 0 {
		return "", 0, socksError{[]byte{socksVersion, method}}
	}
	if _, err := c.Write([]byte{socksVersion, method}); err != nil {
		return "", 0, err
	}
	if _, err := io.ReadFull(c, buf[:4]); err != nil {
		return "", 0, err
	}
	version, command, reserved, kind := buf[0], buf[1], buf[2], buf[3]
	if version != socksVersion || reserved != 0 {
		return "", 0, socksError{}
	}
	if host, err = readSocksHost(c, kind); err != nil {
		return "", 0, err
	}
	if _, err := io.ReadFull(c, buf[:2]); err != nil {
		return "", 0, err
	}
	if command != socksConnect {
		return "", 0, socksError{socksReply(socksCommand)}
	}
	return host, binary.BigEndian.Uint16(buf[:]), nil
}

func readSocksHost(c io.Reader, kind byte) (string, error) {
	var buf [256]byte
	switch kind {
	case socksV4, socksV6:
		size := map[byte]int{socksV4: 4, socksV6: 16}[kind]
		if _, err := io.ReadFull(c, buf[:size]); err != nil {
			return "", err
		}
		addr, _ := netip.AddrFromSlice(buf[:size])
		return addr.String(), nil
	case socksName:
		if _, err := io.ReadFull(c, buf[:1]); err != nil {
			return "", err
		}
		name := buf[:buf[0]]
		if _, err := io.ReadFull(c, name); err != nil {
			return "", err
		}
		return string(name), nil
	}
	return "", socksError{}
}

// socksReply tells how a request went; the address bound is nobody's matter.
func socksReply(code byte) []byte { return []byte{socksVersion, code, 0, socksV4, 0, 0, 0, 0, 0, 0} }
