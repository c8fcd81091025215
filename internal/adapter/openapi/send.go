package openapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/protocol"
)

// How often a request is sent, how it waits between, and how far it is led on.
const (
	maxAttempts  = 4
	firstWait    = 250 * time.Millisecond
	maxRedirects = 10
	maxRefusal   = 64 << 10 // read of what comes with an error status
)

// reply is what a server answered, whole.
type reply struct {
	status int
	header http.Header
	body   []byte
	over   bool // there was more than the cap
	head   bool // nothing comes with it
}

// sending is one run of a command.
type sending struct {
	*command
	client   *client
	run      *adapter.Run
	attempts int
	sent     bool // something may have reached the server
}

// Run sends the request and makes the result of the answer (§3.6).
func (c *command) Run(ctx context.Context, run *adapter.Run) (*adapter.Output, *protocol.Error) {
	s := &sending{command: c, client: c.Adapter.client(), run: run}
	rep, err := s.send(ctx)
	if err != nil {
		return nil, err
	}
	out := &adapter.Output{Answer: &adapter.Answer{Status: rep.status, Bytes: len(rep.body), Attempts: s.attempts}}
	return out, s.answer(rep, out)
}

// send tries as often as the method and the time allow.
func (s *sending) send(ctx context.Context) (*reply, *protocol.Error) {
	for wait := firstWait; ; wait *= 2 {
		s.attempts++
		rep, err := s.follow(ctx)
		s.sent = s.sent || !undialed(err)
		var refusal *protocol.Error
		if errors.As(err, &refusal) {
			return nil, refusal
		}
		if err != nil && ctx.Err() != nil {
			return nil, s.fault(ctx, err)
		}
		again := s.attempts < maxAttempts && retried(s.op.method) && (err != nil && passing(err) || err == nil && busy(rep.status))
		pause := wait
		if again && err == nil {
			pause = s.after(rep.header.Get("Retry-After"), wait)
		}
		if deadline, ok := ctx.Deadline(); again && ok && pause >= time.Until(deadline) {
			again = false // it would only end by its timeout
		}
		switch {
		case again && s.client.Sleep(ctx, pause) == nil:
		case again:
			return nil, s.fault(ctx, ctx.Err())
		case err != nil:
			return nil, s.fault(ctx, err)
		default:
			return rep, nil
		}
	}
}

// undialed says whether no connection was made for a request, so that nothing of it was sent.
func undialed(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// busy are the answers that mean another time.
func busy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// passing says whether a fault is one of the connection, which another attempt may not have.
func passing(err error) bool {
	var address *addressError
	return !errors.As(err, &address) && !proofless(err)
}

// after is how long a server asks to wait: seconds, or until a date.
func (s *sending) after(text string, otherwise time.Duration) time.Duration {
	if n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(s.client.Now()), 0)
	}
	return otherwise
}

// follow sends the request once, and goes where a GET or HEAD is led within the origin. A redirect that is refused is the
// answer.
func (s *sending) follow(ctx context.Context) (*reply, error) {
	req := s.run.Call.Request
	target, err := url.Parse(req.URL)
	if err != nil {
		return nil, protocol.Fail(protocol.InternalError, "The request's address cannot be read.")
	}
	for range maxRedirects {
		rep, err := s.once(ctx, target)
		if err != nil || !slices.Contains([]int{301, 302, 303, 307, 308}, rep.status) || s.op.method != http.MethodGet && s.op.method != http.MethodHead || req.Body != nil {
			return rep, err
		}
		next, err := target.Parse(rep.header.Get("Location"))
		if err != nil || rep.header.Get("Location") == "" || !s.server.same(next) {
			return rep, nil
		}
		next.Scheme, next.Host, next.Fragment, next.RawFragment = s.server.scheme, s.server.host, "", ""
		target = next
	}
	return s.once(ctx, target)
}

// once is one request and its whole answer.
func (s *sending) once(ctx context.Context, target *url.URL) (*reply, error) {
	r, refusal := s.request(ctx, target)
	if refusal != nil {
		return nil, refusal
	}
	answer, err := s.client.transport(r).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	rep := &reply{status: answer.StatusCode, header: answer.Header, head: s.op.method == http.MethodHead}
	limit := int64(maxRefusal)
	if rep.status >= 200 && rep.status <= 299 {
		limit = int64(s.run.Limits.Output)
		if answer.ContentLength > limit {
			rep.over = !rep.head
			return rep, nil
		}
	}
	rep.body, err = readBody(answer, limit)
	if rep.over = int64(len(rep.body)) > limit; rep.over {
		rep.body = rep.body[:limit]
	}
	if rep.status > 299 { // the status says it; what came with it, as far as it came
		err = nil
	}
	return rep, err
}

// readBody reads what there is, and at most one byte more than the limit.
func readBody(answer *http.Response, limit int64) ([]byte, error) {
	if n := answer.ContentLength; n > 0 && n <= limit && answer.Request.Method != http.MethodHead {
		body := make([]byte, n)
		got, err := io.ReadFull(answer.Body, body)
		return body[:got], err
	}
	return io.ReadAll(io.LimitReader(answer.Body, limit+1))
}

// payload hides from net/http that the body could be sent again: this room decides when it is.
type payload struct{ io.Reader }

func (payload) Close() error { return nil }

// request is the rendered request for net/http, with the credential in its place.
func (s *sending) request(ctx context.Context, target *url.URL) (*http.Request, *protocol.Error) {
	req := s.run.Call.Request
	u := *target
	r := (&http.Request{Method: req.Method, URL: &u, Host: u.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	for _, f := range req.Header {
		r.Header[f.Name] = []string{f.Value}
	}
	if len(req.Body) > 0 {
		r.Body, r.ContentLength = payload{bytes.NewReader(req.Body)}, int64(len(req.Body))
	} else if req.Body != nil {
		r.Body = http.NoBody
	}
	for _, place := range s.places {
		if err := s.place(r, place); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// place puts the credential where a scheme says (§8.2, "auto"). Where it has not the parts that are needed the request is not
// sent.
func (s *sending) place(r *http.Request, to scheme) *protocol.Error {
	parts := []string{"token"}
	if to.kind == basic {
		parts = []string{"username", "password"}
	}
	values := make([]string, len(parts))
	for i, part := range parts {
		value, ok := "", false
		if s.run.Credential != nil {
			value, ok = s.run.Credential(part)
		}
		if !ok || value == "" {
			return protocol.Fail(protocol.BindingFailed, "The credential has no "+part+", which the operation's security needs; nothing was sent.")
		}
		values[i] = value
	}
	value := values[0]
	switch to.kind {
	case basic:
		value = "Basic " + base64.StdEncoding.EncodeToString([]byte(values[0]+":"+values[1]))
	case bearer:
		value = "Bearer " + value
	case inQuery:
		kept := slices.DeleteFunc(strings.Split(r.URL.RawQuery, "&"), func(p string) bool {
			name, _, _ := strings.Cut(p, "=")
			plain, err := url.QueryUnescape(name)
			return p == "" || err != nil || plain == to.name
		})
		r.URL.RawQuery = strings.Join(append(kept, encode(to.name, "")+"="+encode(value, "")), "&")
		return nil
	}
	if !clean(value) || strings.TrimSpace(value) != value {
		return protocol.Fail(protocol.BindingFailed, "The credential holds characters that no header can carry; nothing was sent.")
	}
	switch to.kind {
	case bearer, basic:
		r.Header["Authorization"] = []string{value}
	case inHeader:
		r.Header[http.CanonicalHeaderKey(to.name)] = []string{value}
	default:
		if strings.ContainsAny(value, " \t\",;\\") || strings.ContainsFunc(value, func(c rune) bool { return c >= 0x7f }) {
			value = encode(value, "")
		}
		kept := slices.DeleteFunc(strings.Split(strings.Join(r.Header["Cookie"], "; "), "; "), func(c string) bool {
			name, _, _ := strings.Cut(c, "=")
			return c == "" || strings.TrimSpace(name) == to.name
		})
		r.Header["Cookie"] = []string{strings.Join(append(kept, to.name+"="+value), "; ")}
	}
	return nil
}

// proofless is a server whose certificate does not prove it.
func proofless(err error) bool {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var wrong x509.HostnameError
	var unverified *tls.CertificateVerificationError
	return errors.As(err, &invalid) || errors.As(err, &unknown) || errors.As(err, &wrong) || errors.As(err, &unverified)
}

// fault is a request without an answer. Whether the server acted on it is said, for what may not be repeated.
func (s *sending) fault(ctx context.Context, err error) *protocol.Error {
	who := s.server.host
	var address *addressError
	var e *protocol.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return protocol.Fail(protocol.Canceled, "The request to "+who+" was cancelled"+s.unknown()+".").With("attempts", s.attempts)
	case ctx.Err() != nil:
		return protocol.Fail(protocol.Timeout, who+" had not answered when the command's time was over"+s.unknown()+".").With("attempts", s.attempts)
	case errors.As(err, &address):
		e = protocol.Fail(protocol.UpstreamError, who+" was not called: its name leads to no public address.").With("reason", "address")
	case proofless(err):
		e = protocol.Fail(protocol.UpstreamError, who+" was not called: its certificate does not prove it.").With("reason", "certificate")
	default:
		e = protocol.Fail(protocol.UpstreamError, fmt.Sprintf("%s could not be reached, or broke off: %s%s.", who, why(err), s.unknown())).With("reason", "connection")
	}
	return e.With("attempts", s.attempts)
}

// unknown is the end of a sentence about a request that may have been carried out.
func (s *sending) unknown() string {
	switch {
	case s.op.method == http.MethodGet || s.op.method == http.MethodHead:
		return ""
	case !s.sent:
		return "; nothing was sent"
	}
	return "; whether it was carried out is not known"
}

// number is the system's own word for what went wrong, "" when it has none.
func number(err error) string {
	var n syscall.Errno
	switch {
	case errors.As(err, &n):
		return n.Error()
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	return ""
}
