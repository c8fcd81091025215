package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hcpx/internal/protocol"
)

// Path is where the face stands over HTTP.
const Path = "/mcp"

// Bounds of the HTTP face.
const (
	sessionIdle = 30 * time.Minute
	headerWait  = 10 * time.Second
	maxHeader   = 64 << 10
	leave       = 5 * time.Second // for answers under way when it ends
)

// HTTP serves on a loopback address until ctx ends (§12.2). The token is made now and told once, on the log.
func HTTP(ctx context.Context, c Config, address string) error {
	if err := loopback(address); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return protocol.Fail(protocol.UsageError, "That address cannot be listened on: "+protocol.Clause(err.Error())+".").WithHint("hcpx mcp --http --listen 127.0.0.1:PORT")
	}
	v := newServer(ctx, c)
	defer v.close()
	go v.watched()
	token := rand.Text()
	srv := &http.Server{Handler: v.guarded(token, listener.Addr().String()), ReadHeaderTimeout: headerWait, MaxHeaderBytes: maxHeader}
	fmt.Fprintf(c.Log, "hcpx mcp: http://%s%s\nhcpx mcp: Authorization: Bearer %s\n", listener.Addr(), Path, token)
	stop := context.AfterFunc(v.ctx, func() {
		leaving, cancel := context.WithTimeout(context.Background(), leave)
		defer cancel()
		if srv.Shutdown(leaving) != nil {
			_ = srv.Close() // streams that stay open are cut
		}
	})
	defer stop()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// loopback refuses an address that others could reach: who may call is the token's to say, and a token travels in the
// clear here.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err == nil && local(host) {
		return nil
	}
	return protocol.Fail(protocol.UsageError, fmt.Sprintf("%q is no loopback address with a port; hcpx mcp listens for this machine alone.", address)).
		WithHint("hcpx mcp --http --listen 127.0.0.1:7411")
}

func local(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// guarded lets in who has the token and comes from this machine: no page of a browser does, whatever name it gave this
// address.
func (v *server) guarded(token, address string) http.Handler {
	serve := v.handler()
	_, port, _ := net.SplitHostPort(address)
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		switch {
		case !hostIs(r.Host, port):
			http.Error(w, "This server answers to a loopback host alone.", http.StatusForbidden)
		case !originIs(r.Header.Values("Origin")):
			http.Error(w, "This server answers no page of another origin.", http.StatusForbidden)
		case subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "The bearer token is missing or wrong; hcpx mcp --http prints it when it starts.", http.StatusUnauthorized)
		case r.URL.Path != Path:
			http.NotFound(w, r)
		default:
			serve.ServeHTTP(w, r)
		}
	})
}

func hostIs(host, port string) bool {
	name, got, err := net.SplitHostPort(host)
	return err == nil && got == port && local(name)
}

// originIs: no origin, or one of this machine.
func originIs(origins []string) bool {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !local(u.Hostname()) {
			return false
		}
	}
	return len(origins) <= 1
}

// handler speaks each version in its way: since 2026-07-28 every request stands alone, before that a client has a
// session, in which it can be asked.
func (v *server) handler() http.Handler {
	server := func(*http.Request) *sdk.Server { return v.mcp }
	alone := sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{Stateless: true, Logger: v.log, MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true})
	sessions := sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{Logger: v.log, MaxRequestBodyBytes: maxMessage, SessionTimeout: sessionIdle})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= stateless {
			alone.ServeHTTP(w, r)
			return
		}
		sessions.ServeHTTP(w, r)
	})
}
