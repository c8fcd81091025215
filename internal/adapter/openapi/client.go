package openapi

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"hcpx/internal/egress"
)

// Bounds of a connection and of what comes before a body.
const (
	idleTime    = 60 * time.Second
	maxHeader   = 256 << 10
	addressTime = 10 * time.Second // for one of several addresses
)

// client is the one way to a server: HTTP/1.1, over TLS but on the loopback, over connections that are kept. It reads no
// proxy of the environment, keeps no cookie, and follows nothing by itself.
type client struct {
	Options
	kept, once *http.Transport // once: a connection for one request alone
}

func newClient(o Options) *client {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Time{} } // a Retry-After with a date is then far away, and nothing waits for it
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	c := &client{Options: o}
	c.kept = &http.Transport{
		DialContext: c.dial, MaxIdleConnsPerHost: 8, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: maxHeader,
		TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
	}
	c.once = c.kept.Clone()
	c.once.DisableKeepAlives = true
	return c
}

// addressError is a name that leads only where nothing is called.
type addressError struct{ host string }

func (e *addressError) Error() string { return e.host + " leads to no address that may be called" }

// dial resolves the name once, judges each address, and connects to exactly those that may be called (§3.6).
func (c *client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := c.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var first error
	for i, addr := range addrs {
		limit, cancel := ctx, context.CancelFunc(func() {})
		if i < len(addrs)-1 {
			limit, cancel = context.WithTimeout(ctx, addressTime)
		}
		conn, err := c.Dial(limit, network, net.JoinHostPort(addr.String(), port))
		cancel()
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, first
}

// addresses are those of the host that may be called: a literal as it is, localhost as the loopback, a name as the public
// addresses that it leads to.
func (c *client) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if egress.Never(addr) {
			return nil, &addressError{host}
		}
		return []netip.Addr{addr}, nil
	}
	if strings.EqualFold(host, egress.Localhost) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	found, err := c.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var four, six []netip.Addr
	for _, addr := range found {
		switch addr = addr.Unmap(); {
		case !egress.Public(addr) || addr.Zone() != "":
		case addr.Is4():
			four = append(four, addr)
		default:
			six = append(six, addr)
		}
	}
	if len(four)+len(six) == 0 {
		return nil, &addressError{host}
	}
	return append(four, six...), nil // where IPv6 leads nowhere, nobody waits for it
}

// transport is the one for a request. What net/http would send again by itself on a connection that was closed meanwhile,
// though only the methods of §3.6 are sent again, gets a connection of its own.
func (c *client) transport(r *http.Request) *http.Transport {
	replayed := r.Method == http.MethodOptions || r.Method == http.MethodTrace ||
		r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
	if (r.Body == nil || r.Body == http.NoBody) && replayed && !retried(r.Method) {
		return c.once
	}
	return c.kept
}

// retried are the methods that may be sent again (§3.6).
func retried(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodPut || method == http.MethodDelete
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// why is what went wrong with a connection, in words that name no address: net/http's own hold the URL, and with it a key.
func why(err error) string {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "its name is not known"
	case errors.As(err, &dns):
		return "its name could not be resolved"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it did not answer in time"
	}
	if text := number(err); text != "" {
		return text
	}
	return "the connection broke off, or what came is no HTTP"
}
