package openapi

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"hcpx/internal/egress"
)

// server is the one server of a pack: the manifest's.
type server struct {
	scheme, host string // host with its port, where it names one
	base         string // path without a slash at its end
}

// parseServer reads the manifest's server: https, or http to this machine; a host that is a name, or an address in its one
// spelling that may be called (§3.6). The error is the end of a sentence that begins with "The server".
func parseServer(address string) (server, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http":
		return server{}, errors.New("is an https address, or an http address of this machine")
	case u.Fragment != "" || u.RawQuery != "" || u.ForceQuery:
		return server{}, errors.New("is scheme, host and path alone")
	}
	name := u.Hostname()
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	h, err := egress.ParseHost(name + ":1")
	if err != nil {
		return server{}, errors.New("has a host that is none: " + err.Error())
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return server{}, errors.New("has a port that is no number from 1 to 65535")
		}
	}
	local := h.Name == egress.Localhost || h.Addr.IsLoopback()
	switch {
	case u.Scheme == "http" && !local:
		return server{}, errors.New("is an https address, or an http address of this machine")
	case h.Name == "" && egress.Never(h.Addr):
		return server{}, errors.New("has an address that is never called")
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if dots(segment) {
			return server{}, errors.New("has a path with . or .. in it")
		}
	}
	return server{u.Scheme, canonicalHost(u), strings.TrimRight(escapeLiteral(u.EscapedPath()), "/")}, nil
}

// canonicalHost is host and port in lower case, without the port that the scheme has by itself.
func canonicalHost(u *url.URL) string {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		host = addr.String()
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && port != map[string]string{"https": "443", "http": "80"}[u.Scheme] {
		host += ":" + port
	}
	return host
}

func (s server) origin() string { return s.scheme + "://" + s.host }

// same says whether an address is of this origin.
func (s server) same(u *url.URL) bool {
	return strings.EqualFold(u.Scheme, s.scheme) && u.User == nil && u.Opaque == "" && canonicalHost(&url.URL{Scheme: s.scheme, Host: u.Host}) == s.host
}

// within gives the path of a server that an operation names itself, when it is of this origin. A relative one is taken from
// the origin.
func (s server) within(address string) (base string, ok bool) {
	root := &url.URL{Scheme: s.scheme, Host: s.host, Path: "/"}
	u, err := root.Parse(address)
	if err != nil || address == "" || !s.same(u) || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		if dots(segment) {
			return "", false
		}
	}
	return strings.TrimRight(escapeLiteral(u.EscapedPath()), "/"), true
}

// dots says whether a segment of a path means this directory or the one above, however it is written.
func dots(segment string) bool {
	segment, _, _ = strings.Cut(segment, ";") // what follows are parameters to some servers
	plain := strings.ReplaceAll(strings.ToLower(segment), "%2e", ".")
	return plain == "." || plain == ".."
}
