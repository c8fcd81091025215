package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Proxy serves one connection of the command's proxy (§10.2): SOCKS5, CONNECT, or one plain http request. The host
// that the client names is what is checked, and only a checked address is dialed. Encrypted traffic is not opened.
func Proxy(r *Run, c net.Conn) {
	late := time.AfterFunc(headTime, func() { _ = c.Close() })
	defer late.Stop()
	in := bufio.NewReaderSize(c, maxHead)
	first, err := in.Peek(1)
	if err != nil {
		return
	}
	if first[0] == socksVersion {
		r.socks(in, c, late)
		return
	}
	req, err := readRequest(in)
	late.Stop()
	if err != nil {
		r.unread(err)
		answer(c, "400 Bad Request")
		return
	}
	up, status := r.open(req.host, req.port)
	if up == nil {
		answer(c, status)
		return
	}
	defer r.done(up)
	to, head := up, req.head
	if req.connect {
		to, head = c, []byte("HTTP/1.1 200 Connection established\r\n\r\n")
	}
	if _, err := to.Write(head); err != nil {
		return
	}
	var body io.Reader = in
	if !req.connect && req.body >= 0 {
		body = io.LimitReader(in, req.body)
	}
	pump(c, body, up, req.connect)
}

func (r *Run) socks(in *bufio.Reader, c net.Conn, late *time.Timer) {
	host, port, err := readSocks(struct {
		io.Reader
		io.Writer
	}{in, c})
	late.Stop()
	if err != nil {
		r.unread(err)
		var odd socksError
		if errors.As(err, &odd) {
			_, _ = c.Write(odd.reply) // it is closed in any case
		}
		return
	}
	up, status := r.open(host, port)
	if up == nil {
		code := byte(socksFailed)
		if strings.HasPrefix(status, "403") {
			code = socksForbidden
		}
		_, _ = c.Write(socksReply(code)) // it is closed in any case
		return
	}
	defer r.done(up)
	if _, err := c.Write(socksReply(0)); err != nil {
		return
	}
	pump(c, in, up, true)
}

// unread keeps for the report that the proxy was asked for something else than a connection. A client that only went
// away asked for nothing.
func (r *Run) unread(err error) {
	if errors.Is(err, errRequest) || errors.Is(err, bufio.ErrBufferFull) || errors.As(err, new(socksError)) {
		r.deny("a request that is none of the proxy")
	}
}

// open connects to the first checked address of a host that answers; nil comes with what a client is told, and the
// report knows why.
func (r *Run) open(host string, port uint16) (net.Conn, string) {
	to, refused := r.targets(host, port)
	if refused {
		return nil, "403 Forbidden"
	}
	for _, addr := range to {
		if up := r.dialOne(addr); up != nil {
			return up, ""
		}
	}
	if len(to) > 0 && r.life.Err() == nil {
		r.deny("connect " + printable(net.JoinHostPort(foldName(host), strconv.Itoa(int(port)))) + ": " + noAnswer)
	}
	return nil, "502 Bad Gateway"
}

func (r *Run) dialOne(to netip.AddrPort) net.Conn {
	ctx, cancel := context.WithTimeout(r.life, dialTime)
	defer cancel()
	up, err := r.dial(ctx, to)
	if err != nil || !r.hold(up) {
		return nil
	}
	return up
}

// done is the end of a connection that hold took.
func (r *Run) done(c net.Conn) {
	r.drop(c)
	r.work.Done()
}

// answer is a refusal or failure in http. It must not pass for a page: many clients, curl among them, take the body of
// any status for a success. So a body is announced that does not come, which is a failure for every client, and those
// that look at the status know at once that it makes no sense to try again.
func answer(c net.Conn, status string) {
	_, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\nContent-Length: 1\r\nConnection: close\r\n\r\n") // the client may be gone
}

// pump carries bytes both ways until the server has ended. The end of one direction is passed on, where the other side
// may still speak; the end of the run closes both connections, which ends both copies.
func pump(c net.Conn, from io.Reader, up net.Conn, half bool) {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := io.Copy(up, from)
		if err != nil {
			_ = up.Close()
		} else if half {
			closeWrite(up)
		}
	}()
	_, _ = io.Copy(c, up)
	closeWrite(c)
	late := time.AfterFunc(lingerTime, func() { _ = c.Close() }) // the client may have more to say, but nobody listens
	<-sent
	late.Stop()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
