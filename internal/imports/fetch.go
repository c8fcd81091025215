package imports

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"hcpx/internal/egress"
	"hcpx/internal/protocol"
)

// The bounds of a fetch.
const (
	fetchTimeout = 30 * time.Second
	maxRedirects = 5
)

// fetcher gets a document from an address: one GET without credentials, cookies or a proxy. Names lead to public
// addresses only; a private or loopback address is spoken to when the address that was typed is itself one.
type fetcher struct {
	roots *x509.CertPool // nil: the system's
	typed string         // the host that was typed
}

func fetch(ctx context.Context, address string) (Source, *protocol.Error) {
	return (&fetcher{}).get(ctx, address)
}

func (f *fetcher) get(ctx context.Context, address string) (Source, *protocol.Error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme == "http" && !loopback(u.Hostname()) {
		return Source{}, protocol.Fail(protocol.UsageError, "The address of a document is https, or http to this machine, and holds no credential.").
			WithHint("hcpx import openapi --help")
	}
	f.typed = u.Hostname()
	name := shown(u)
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	transport := &http.Transport{
		DialContext:           f.dial,
		TLSClientConfig:       &tls.Config{RootCAs: f.roots, MinVersion: tls.VersionTLS12},
		ResponseHeaderTimeout: 20 * time.Second,
		DisableKeepAlives:     true,
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Source{}, missing(name, "its address has no valid form")
	}
	request.Header.Set("User-Agent", "hcpx")
	request.Header.Set("Accept", "application/json, application/yaml, */*")
	answer, err := (&http.Client{Transport: transport, CheckRedirect: redirect}).Do(request)
	if err != nil {
		return Source{}, missing(name, why(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return Source{}, missing(name, fmt.Sprintf("the server answered with status %d", answer.StatusCode))
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	switch {
	case err != nil:
		return Source{}, missing(name, why(err))
	case len(body) > maxDocument:
		return Source{}, large(name)
	}
	return Source{Name: name, URL: answer.Request.URL.String(), Text: body}, nil
}

// shown is an address without its query, which may hold a key.
func shown(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

func missing(name, because string) *protocol.Error {
	return fail(unreachable, fmt.Sprintf("The document %s was not fetched: %s.", name, because), "fetch it yourself, then import the file")
}

var (
	errRedirect = errors.New("it was redirected to an address that is not https")
	errMany     = errors.New("it was redirected too often")
)

// errAddress is an address that no document is fetched from.
type errAddress struct{ addr string }

// Error names the address.
func (e *errAddress) Error() string { return e.addr + " is no public address" }

func redirect(next *http.Request, via []*http.Request) error {
	switch {
	case next.URL.Scheme != "https" || next.URL.User != nil:
		return errRedirect
	case len(via) > maxRedirects:
		return errMany
	}
	next.Header.Del("Referer") // it would carry the query of the address before
	return nil
}

// dial refuses an address when the name is resolved and before anything is sent to it (§10.2).
func (f *fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 10 * time.Second, ControlContext: func(_ context.Context, _, to string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(to)
		if err != nil || !f.allowed(host, at.Addr()) {
			return &errAddress{to}
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}

// own says whether a host is itself an address that is not public.
func own(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == egress.Localhost || err == nil && !egress.Public(addr)
}

// allowed says whether the host may lead to the address: a public one, or the one that was typed.
func (f *fetcher) allowed(host string, addr netip.Addr) bool {
	switch {
	case egress.Public(addr):
		return true
	case host != f.typed || !own(host) || egress.Never(addr):
		return false
	}
	return host != egress.Localhost || addr.Unmap().IsLoopback()
}

// why is the cause of a failed request, without its address.
func why(err error) string {
	var at *errAddress
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errRedirect), errors.Is(err, errMany):
		return errors.Unwrap(err).Error()
	case errors.As(err, &at):
		return at.Error()
	case errors.As(err, &dns):
		return "its host has no address"
	case errors.As(err, &cert):
		return "the server's certificate does not prove its name"
	case errors.Is(err, context.Canceled):
		return "it was cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it took longer than %s", fetchTimeout)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "the server did not answer in time"
	}
	return "the connection failed"
}
