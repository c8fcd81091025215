package binding

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hcpx/internal/egress"
	"hcpx/internal/protocol"
)

// Bounds of an answer: a token endpoint has little to say.
const (
	maxHead        = 16 << 10
	maxBody        = 64 << 10
	requestTimeout = 20 * time.Second
	maxInterim     = 5 // answers of 1xx
)

// wire sends one POST to a token endpoint and reads one answer: HTTP/1.1 over TLS, one connection for each request. It
// follows no redirect, keeps no cookie, takes no proxy, and speaks to no address of the machine's links. It is small on
// purpose: what it cannot do, no server can make it do (§8.4).
type wire struct {
	Net
	now func() time.Time
}

// call is one request. Id and secret of the client go into a header when secret is set, as the source says.
type call struct {
	to         string
	form       url.Values
	id, secret string
}

// answer is what came back.
type answer struct {
	status int
	body   []byte
	date   time.Time // the server's clock; zero when it did not say
	length int64     // of the head; -1 = none
	chunks bool
}

// host is how an endpoint is named in a message.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the server"
	}
	return u.Host
}

// post is the one way to a server.
func (w wire) post(ctx context.Context, c call) (answer, *protocol.Error) {
	u, err := url.Parse(c.to)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return answer{}, failed(Denied, "The address of the server is none that a credential is sent to.")
	}
	limit := w.Timeout
	if limit <= 0 {
		limit = requestTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := w.dial(ctx, u)
	if err != nil {
		return answer{}, w.fault(ctx, u, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write(c.head(u)); err != nil {
		return answer{}, w.fault(ctx, u, err)
	}
	a, err := readAnswer(bufio.NewReader(conn))
	if err != nil {
		return answer{}, w.fault(ctx, u, err)
	}
	return a, nil
}

// head is the request as it goes out.
func (c call) head(u *url.URL) []byte {
	body := c.form.Encode()
	var b strings.Builder
	b.WriteString("POST " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\nUser-Agent: hcpx\r\nAccept: application/json\r\n")
	if c.secret != "" {
		pair := url.QueryEscape(c.id) + ":" + url.QueryEscape(c.secret)
		b.WriteString("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) + "\r\n")
	}
	b.WriteString("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\nConnection: close\r\n\r\n" + body)
	return []byte(b.String())
}

// dial connects, and for https proves the server.
func (w wire) dial(ctx context.Context, u *url.URL) (net.Conn, error) {
	name, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	conn, err := w.Dial(ctx, "tcp", net.JoinHostPort(name, port))
	if err != nil {
		return nil, err
	}
	if err := open(conn.RemoteAddr(), u.Scheme == "http"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if u.Scheme == "http" {
		return conn, nil
	}
	secured := tls.Client(conn, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12, RootCAs: w.Roots, Time: w.now})
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake is the fault
		return nil, err
	}
	return secured, nil
}

// errAddress is an address that no credential is sent to.
var errAddress = errors.New("its address is one that no credential is sent to")

// open judges the address that was connected to, before a byte is sent. Plain http is for this machine alone. A name
// that leads to a private address is taken: its certificate proves it.
func open(addr net.Addr, plain bool) error {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil || plain && !at.Addr().Unmap().IsLoopback() || egress.Never(at.Addr()) {
		return errAddress
	}
	return nil
}

// Dial connects as this machine does, and to no address that open would refuse.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || egress.Never(at.Addr()) {
			return errAddress
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}

// errAnswer is an answer that is no HTTP, or too much of it.
var errAnswer = errors.New("what it answers is no HTTP answer of a sensible size")

// fault sorts what went wrong on the way into reasons.
func (w wire) fault(ctx context.Context, u *url.URL, err error) *protocol.Error {
	who := "The server " + u.Host
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var wrong x509.HostnameError
	switch {
	case ctx.Err() != nil:
		return waited(ctx, "the server "+u.Host)
	case errors.Is(err, errAddress):
		return failed(Denied, who+" was not asked: "+errAddress.Error()+".")
	case errors.Is(err, errAnswer):
		return failed(Malformed, who+" was asked, and "+errAnswer.Error()+".")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return failed(Clock, who+" was not asked: its certificate is not valid at the time of this machine, "+w.now().UTC().Format(time.RFC3339)+".")
	case errors.As(err, &invalid), errors.As(err, &unknown), errors.As(err, &wrong):
		return failed(Denied, who+" was not asked: its certificate does not prove it.")
	default:
		return failed(Server, who+" could not be reached, or broke off.")
	}
}

// readAnswer reads the one answer, and not a byte more than it may have.
func readAnswer(in *bufio.Reader) (answer, error) {
	left := maxHead
	for range maxInterim {
		a, err := readHead(in, &left)
		if err != nil {
			return answer{}, err
		}
		if a.status >= 200 {
			a.body, err = readBody(in, a)
			return a, err
		}
	}
	return answer{}, errAnswer
}

// readHead reads status and fields.
func readHead(in *bufio.Reader, left *int) (answer, error) {
	a := answer{length: -1}
	line, err := readLine(in, left)
	if err != nil {
		return a, err
	}
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	a.status, err = strconv.Atoi(code)
	if err != nil || version != "HTTP/1.1" && version != "HTTP/1.0" || len(code) != 3 || a.status < 100 || a.status == 101 {
		return a, errAnswer
	}
	for {
		line, err := readLine(in, left)
		if err == nil && line == "" && a.chunks && version == "HTTP/1.0" {
			err = errAnswer // which has no chunks
		}
		if err != nil || line == "" {
			return a, err
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return a, errAnswer
		}
		if err := a.field(strings.ToLower(name), strings.Trim(value, " \t")); err != nil {
			return a, err
		}
	}
}

// field takes what is needed of a head. Two lengths, or a length and chunks, are no answer.
func (a *answer) field(name, value string) error {
	switch name {
	case "content-length":
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || a.length >= 0 || a.chunks {
			return errAnswer
		}
		a.length = int64(n)
	case "transfer-encoding":
		if !strings.EqualFold(value, "chunked") || a.length >= 0 || a.chunks {
			return errAnswer
		}
		a.chunks = true
	case "content-encoding":
		if !strings.EqualFold(value, "identity") {
			return errAnswer // none was asked for
		}
	case "date":
		if at, err := time.Parse(time.RFC1123, value); err == nil {
			a.date = at
		}
	}
	return nil
}

func readLine(in *bufio.Reader, left *int) (string, error) {
	line, err := in.ReadSlice('\n')
	if *left -= len(line); *left < 0 || errors.Is(err, bufio.ErrBufferFull) {
		return "", errAnswer
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
}

func readBody(in *bufio.Reader, a answer) ([]byte, error) {
	switch {
	case a.status == 204 || a.status == 304:
		return nil, nil
	case a.chunks:
		return readChunks(in)
	case a.length > maxBody:
		return nil, errAnswer
	case a.length >= 0:
		body := make([]byte, a.length)
		_, err := io.ReadFull(in, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(in, maxBody+1))
	if err == nil && len(body) > maxBody {
		err = errAnswer
	}
	return body, err
}

func readChunks(in *bufio.Reader) ([]byte, error) {
	var body []byte
	for left := maxHead; ; {
		line, err := readLine(in, &left)
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
		if err != nil || len(body)+int(n) > maxBody {
			return nil, errAnswer
		}
		if n == 0 {
			return body, nil // trailers say nothing that is needed
		}
		chunk := make([]byte, n)
		if _, err := io.ReadFull(in, chunk); err != nil {
			return nil, err
		}
		body = append(body, chunk...)
		if end, err := readLine(in, &left); err != nil || end != "" {
			return nil, fmt.Errorf("%w: a chunk does not end", errAnswer)
		}
	}
}
