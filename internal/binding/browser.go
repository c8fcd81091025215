package binding

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// redirectPath is where the browser comes back to, on a port of the loopback that this connect alone has (RFC 8252).
const redirectPath = "/callback"

// browser is the authorization code flow with PKCE S256 (RFC 7636).
func (h *hub) browser(ctx context.Context, src *manifest.Source, p Person, r *record) *protocol.Error {
	if p.Visit == nil {
		return failed(Missing, "The source needs a person who opens a page, and nobody can be told here.")
	}
	state, verifier, err := h.nonce(), h.nonce(), ctxFault(ctx)
	if err != nil || state == "" || verifier == "" {
		return failed(Unkept, "This machine gives no random numbers.")
	}
	ln, fault := net.Listen("tcp", "127.0.0.1:0")
	if fault != nil {
		return failed(Missing, "No port of this machine could be opened for the browser to come back to.")
	}
	defer ln.Close()
	at := "http://" + ln.Addr().String() + redirectPath
	address, fault := url.Parse(src.AuthURL)
	if fault != nil {
		return failed(Denied, "The address to open cannot be read.")
	}
	challenge := sha256.Sum256([]byte(verifier))
	q := address.Query()
	target(src, r.Scopes, q)
	for key, value := range map[string]string{
		"response_type": "code", "client_id": src.ClientID, "redirect_uri": at, "state": state,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256",
	} {
		q.Set(key, value)
	}
	address.RawQuery = q.Encode()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	back := callback{host: ln.Addr().String(), state: state, src: src}.listen(ctx, ln)
	p.Visit(address.String(), "")
	var came came
	select {
	case came = <-back:
	case <-ctx.Done():
		came.err = waited(ctx, "the person at "+host(src.AuthURL))
	}
	if came.err != nil {
		return came.err
	}
	got, err := h.ask(ctx, src, r.Client, url.Values{"grant_type": {grantCode}, "code": {came.code}, "redirect_uri": {at}, "code_verifier": {verifier}})
	if err != nil {
		return err
	}
	r.Refresh = got.refresh
	r.put(src, "", got.token)
	return nil
}

// nonce is 32 random bytes as 43 characters; "" when there are none.
func (h *hub) nonce() string {
	var raw [32]byte
	if _, err := io.ReadFull(h.Rand, raw[:]); err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw[:])
}

// callback waits for the one request that bears the state. Whatever else knocks is turned away, and the wait goes on.
type callback struct {
	host, state string
	src         *manifest.Source
}

// came is what a request brought.
type came struct {
	code string
	err  *protocol.Error
}

func (c callback) listen(ctx context.Context, ln net.Listener) <-chan came {
	got := make(chan came, 1)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go c.serve(ctx, conn, got)
		}
	}()
	return got
}

// serve reads one request; a browser may open connections that it never uses.
func (c callback) serve(ctx context.Context, conn net.Conn, got chan<- came) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	g, status, words := c.read(bufio.NewReader(conn))
	body := words + "\n"
	_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: "+strconv.Itoa(len(body))+
		"\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n"+body) // the page is a courtesy
	if g == nil {
		return
	}
	select {
	case got <- *g:
	default: // the state was used already
	}
}

// read takes GET /callback with the state, addressed to this very port; nil for anything else.
func (c callback) read(in *bufio.Reader) (g *came, status, words string) {
	left, first, named := maxHead, "", ""
	for {
		line, err := readLine(in, &left)
		if err != nil {
			return nil, "400 Bad Request", "This is no request."
		}
		if line == "" {
			break
		}
		if first == "" {
			first = line
		} else if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "host") {
			named += strings.TrimSpace(value)
		}
	}
	method, rest, _ := strings.Cut(first, " ")
	where, _, _ := strings.Cut(rest, " ")
	u, err := url.ParseRequestURI(where)
	if err != nil || method != "GET" || u.Path != redirectPath || named != c.host {
		return nil, "404 Not Found", "There is nothing here."
	}
	q := u.Query()
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(c.state)) != 1 {
		return nil, "400 Bad Request", "This answer belongs to another request."
	}
	who := "The server " + host(c.src.AuthURL)
	switch {
	case c.src.Issuer != "" && q.Get("iss") != c.src.Issuer:
		return &came{err: failed(Denied, "The answer in the browser does not come from "+c.src.Issuer+".")}, "400 Bad Request", "This answer comes from another server."
	case q.Get("error") != "":
		word := known(q.Get("error"))
		return &came{err: failed(Denied, who+" refused: "+word+".").With("error", word)}, "200 OK", "Nothing was connected. You can close this page."
	case q.Get("code") == "":
		return &came{err: failed(Malformed, who+" sent the browser back without a code.")}, "400 Bad Request", "There is no code in this answer."
	}
	return &came{code: q.Get("code")}, "200 OK", "Go back to the terminal. You can close this page."
}
