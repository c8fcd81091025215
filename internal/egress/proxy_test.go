package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is a proxy with a web server behind it, which is reached by name alone.
type world struct {
	t      *testing.T
	run    *Run
	denied []string
	server *httptest.Server
	port   string
	seen   chan *http.Request
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, seen: make(chan *http.Request, 10)}
	w.server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		body, _ := io.ReadAll(in.Body)
		w.seen <- in
		if in.URL.Path == "/away" {
			http.Redirect(out, in, "http://evil.example.test:"+w.port+"/", http.StatusFound)
			return
		}
		fmt.Fprintf(out, "%s %s %s", in.Method, in.URL, body)
	}))
	t.Cleanup(w.server.Close)
	_, w.port, _ = net.SplitHostPort(w.server.Listener.Addr().String())
	z := &zone{names: map[string][]string{"web.example.test": {"127.0.0.1"}, "inner.example.test": {"127.0.0.1"}, "dead.example.test": {"127.0.0.1"}, "mute.example.test": {"fails"}}}
	w.run = newRun(t, z, &w.denied, "web.example.test:"+w.port, "127.0.0.1:"+w.port, "inner.example.test:1", "dead.example.test:9", "127.0.0.1:9", "gone.example.test:80", "mute.example.test:80", "web.example.test:2")
	return w
}

// dial opens a connection to the proxy.
func (w *world) dial(context.Context, string, string) (net.Conn, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	server, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	w.run.Serve(server, Proxy)
	return client, nil
}

// client is Go's own, told of the proxy.
func (w *world) client(scheme string) *http.Client {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: scheme, Host: "proxy.invalid:1"}), DialContext: w.dial}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

// say sends bytes to the proxy and returns all that comes back.
func (w *world) say(request string) string {
	w.t.Helper()
	c, err := w.dial(context.Background(), "", "")
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		w.t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	got, _ := io.ReadAll(c)
	return string(got)
}

// §10.2: programs that know a proxy reach what is listed, by each of the ways that there are.
func Test_10_2_proxy(t *testing.T) {
	w := newWorld(t)
	for _, scheme := range []string{"http", "socks5"} {
		for _, host := range []string{"web.example.test", "WEB.example.test.", "127.0.0.1"} {
			c := w.client(scheme)
			for range 2 { // the client may keep a connection, the proxy may not
				res, err := c.Post("http://"+host+":"+w.port+"/a?b=c", "text/plain", strings.NewReader("hello"))
				if err != nil {
					t.Fatalf("%s %s: %v", scheme, host, err)
				}
				body, _ := io.ReadAll(res.Body)
				if string(body) != "POST /a?b=c hello" {
					t.Errorf("%s %s: %d %q", scheme, host, res.StatusCode, body)
				}
				if in := <-w.seen; in.Host != host+":"+w.port || in.Header.Get("Proxy-Connection") != "" {
					t.Errorf("%s %s: the server saw %v", scheme, host, in)
				}
			}
		}
	}
	for _, host := range []string{"web.example.test:" + w.port, "127.0.0.1:" + w.port} {
		got := w.say("CONNECT " + host + " HTTP/1.1\r\nHost: x\r\n\r\nGET /t HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "GET /t ") {
			t.Errorf("CONNECT %s: %q", host, got)
		}
	}
	if len(w.denied) > 0 {
		t.Errorf("refused: %q", w.denied)
	}
}

// §10.2: the name that is checked is the one that the server sees, and nothing meant for the proxy goes on.
func Test_10_2_proxy_host_header(t *testing.T) {
	w := newWorld(t)
	at := "web.example.test:" + w.port
	got := w.say("GET http://" + at + "/x HTTP/1.1\r\nHost: evil.example.test\r\nProxy-Authorization: Basic eA==\r\nConnection: keep-alive, X-Drop\r\nX-Keep: 1\r\n\r\n" +
		"GET http://evil.example.test/second HTTP/1.1\r\nHost: evil.example.test\r\n\r\n")
	if strings.Count(got, "HTTP/1.1 200 OK") != 1 {
		t.Errorf("%q", got)
	}
	in := <-w.seen
	if in.Host != at || in.Header.Get("Proxy-Authorization") != "" || in.Header.Get("X-Keep") != "1" || in.Header.Get("Connection") != "close" {
		t.Errorf("the server saw %v", in)
	}
	if len(w.seen) > 0 {
		t.Errorf("a second request went on: %v", <-w.seen)
	}
}

// §10.2: what is not listed is refused by each way, and stands in the report.
func Test_10_2_proxy_refuses(t *testing.T) {
	w := newWorld(t)
	socks := func(request ...byte) string { return "\x05\x01\x00" + string(append([]byte{5, 1, 0}, request...)) }
	name, unread := "evil.example.test", "a request that is none of the proxy"
	for request, want := range map[string][2]string{
		"CONNECT " + name + ":" + w.port + " HTTP/1.1\r\n\r\n":             {"HTTP/1.1 403", "connect " + name + ":" + w.port + ": not listed"},
		"CONNECT web.example.test:22 HTTP/1.1\r\n\r\n":                     {"HTTP/1.1 403", "connect web.example.test:22: not listed"},
		"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n":                            {"HTTP/1.1 403", "connect 127.0.0.1:22: loopback address"},
		"CONNECT [::1]:22 HTTP/1.1\r\n\r\n":                                {"HTTP/1.1 403", "connect [::1]:22: loopback address"},
		"CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1\r\n\r\n":             {"HTTP/1.1 403", "connect 169.254.169.254:80: metadata address"},
		"CONNECT 10.0.0.5:80 HTTP/1.1\r\n\r\n":                             {"HTTP/1.1 403", "connect 10.0.0.5:80: private address"},
		"CONNECT 127.1:80 HTTP/1.1\r\n\r\n":                                {"HTTP/1.1 403", "connect 127.1:80: not listed"},
		"CONNECT 0x7f000001:80 HTTP/1.1\r\n\r\n":                           {"HTTP/1.1 403", "connect 0x7f000001:80: not listed"},
		"CONNECT 0.0.0.0:" + w.port + " HTTP/1.1\r\n\r\n":                  {"HTTP/1.1 403", "connect 0.0.0.0:" + w.port + ": unspecified address"},
		"GET http://" + name + "/ HTTP/1.1\r\n\r\n":                        {"HTTP/1.1 403", "connect " + name + ":80: not listed"},
		"GET http://169.254.169.254/latest HTTP/1.0\r\n\r\n":               {"HTTP/1.1 403", "connect 169.254.169.254:80: metadata address"},
		"CONNECT inner.example.test:1 HTTP/1.1\r\n\r\n":                    {"HTTP/1.1 403", "name inner.example.test: loopback address 127.0.0.1"},
		"CONNECT dead.example.test:9 HTTP/1.1\r\n\r\n":                     {"HTTP/1.1 502", "connect dead.example.test:9: no answer"},
		"GET http://dead.example.test:9/ HTTP/1.1\r\n\r\n":                 {"HTTP/1.1 502", "connect dead.example.test:9: no answer"},
		"GET http://gone.example.test/ HTTP/1.1\r\n\r\n":                   {"HTTP/1.1 502", "name gone.example.test: does not resolve"},
		"CONNECT mute.example.test:80 HTTP/1.1\r\n\r\n":                    {"HTTP/1.1 502", "name mute.example.test: does not resolve"},
		"CONNECT web.example.test:2 HTTP/1.1\r\n\r\n":                      {"HTTP/1.1 403", "connect web.example.test:2: loopback address 127.0.0.1"},
		socks(append([]byte{3, 17}, name+"\x00\x50"...)...):                {"\x05\x00\x05\x02", "connect " + name + ":80: not listed"},
		socks(1, 127, 0, 0, 1, 0, 22):                                      {"\x05\x00\x05\x02", "connect 127.0.0.1:22: loopback address"},
		socks(append(append([]byte{4}, make([]byte, 15)...), 1, 0, 22)...): {"\x05\x00\x05\x02", "connect [::1]:22: loopback address"},
		socks(1, 127, 0, 0, 1, 0, 9):                                       {"\x05\x00\x05\x04", "connect 127.0.0.1:9: no answer"},
		"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x16":             {"\x05\x00\x05\x07", unread}, // BIND
		"\x05\x01\x00\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x35":             {"\x05\x00\x05\x07", unread}, // UDP ASSOCIATE
		"\x05\x01\x02": {"\x05\xff", unread}, // a password
		"\x04\x01\x00\x50\x7f\x00\x00\x01\x00\r\n\r\n":                                                      {"HTTP/1.1 400", unread},
		"GET / HTTP/1.1\r\nHost: web.example.test\r\n\r\n":                                                  {"HTTP/1.1 400", unread},
		"GET https://web.example.test/ HTTP/1.1\r\n\r\n":                                                    {"HTTP/1.1 400", unread},
		"GET http://user@web.example.test:" + w.port + "/ HTTP/1.1\r\n\r\n":                                 {"HTTP/1.1 400", unread},
		"GET http://web.example.test:" + w.port + "\\@evil/ HTTP/1.1\r\n\r\n":                               {"HTTP/1.1 400", unread},
		"CONNECT web.example.test HTTP/1.1\r\n\r\n":                                                         {"HTTP/1.1 400", unread},
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                                  {"HTTP/1.1 400", unread},
		"GET http://web.example.test/ HTTP/1.1\nX: y\n\n":                                                   {"HTTP/1.1 400", unread},
		"GET http://web.example.test/ HTTP/1.1\r\nX : y\r\n\r\n":                                            {"HTTP/1.1 400", unread},
		"GET http://web.example.test/ HTTP/1.1\r\n folded\r\n\r\n":                                          {"HTTP/1.1 400", unread},
		"POST http://web.example.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n":          {"HTTP/1.1 400", unread},
		"POST http://web.example.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n": {"HTTP/1.1 400", unread},
		"GET http://web.example.test/ HTTP/1.1\r\nX: " + strings.Repeat("y", maxHead) + "\r\n\r\n":          {"HTTP/1.1 400", unread},
		"GET http://web.example.test/ HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", maxLines+1) + "\r\n":       {"HTTP/1.1 400", unread},
		"SSH-2.0-x\r\n": {"", ""},
	} {
		w.denied = nil
		c := make(chan string, 1)
		go func() { c <- w.say(request) }()
		if request == "SSH-2.0-x\r\n" { // not ended: only the time limit or the run closes it
			continue
		}
		got := <-c
		if !strings.HasPrefix(got, want[0]) {
			t.Errorf("%.60q: %.100q, want %q", request, got, want[0])
		}
		if want[1] != "" && !slices.Contains(w.denied, want[1]) && want[1] != "name inner.example.test: loopback address 127.0.0.1" {
			t.Errorf("%.60q: refused %q, want %q", request, w.denied, want[1])
		}
	}
	if len(w.seen) > 0 {
		t.Errorf("the server saw %v", <-w.seen)
	}
}

// §10.2: a redirect from a listed host leads nowhere else.
func Test_10_2_proxy_redirect(t *testing.T) {
	w := newWorld(t)
	res, err := w.client("http").Get("http://web.example.test:" + w.port + "/away")
	if err != nil || res.StatusCode != http.StatusForbidden {
		t.Fatalf("%v, %v", res, err)
	}
	if body, err := io.ReadAll(res.Body); len(body) > 0 || err == nil {
		t.Errorf("the refusal passes for a page: %q", body)
	}
	if want := "connect evil.example.test:" + w.port + ": not listed"; !slices.Contains(w.denied, want) {
		t.Errorf("refused %q, want %q", w.denied, want)
	}
}

// §10.2: the end of a run closes every connection, whatever is going on, and leaves no goroutine.
func Test_10_2_proxy_ends_with_the_run(t *testing.T) {
	before := runtime.NumGoroutine()
	hang, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hang.Close()
	list, err := Parse([]string{hang.Addr().String(), "slow.example.test:1", "9.9.9.9:1"})
	if err != nil {
		t.Fatal(err)
	}
	asked, dialed := make(chan bool, 2), make(chan bool, 1)
	r := NewRun(list, endless(asked, dialed))
	w := &world{t: t, run: r}
	open := func(request string) net.Conn {
		c, err := w.dial(context.Background(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		return c
	}
	tunnel := open("CONNECT " + hang.Addr().String() + " HTTP/1.1\r\n\r\n")
	if line, err := bufio.NewReader(tunnel).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q %v", line, err)
	}
	held := []net.Conn{tunnel, open("CONN"), open("\x05"), open("CONNECT slow.example.test:1 HTTP/1.1\r\n\r\n"), open("CONNECT 9.9.9.9:1 HTTP/1.1\r\n\r\n")}
	<-asked
	<-dialed
	r.Close()
	for i, c := range held {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(c); errors.Is(err, context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("connection %d is still open: %v", i, err)
		}
		_ = c.Close()
	}
	c := open("CONNECT " + hang.Addr().String() + " HTTP/1.1\r\n\r\n")
	if got, _ := io.ReadAll(c); len(got) > 0 {
		t.Errorf("after the end: %q", got)
	}
	_ = c.Close()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// endless is an outside where names are never resolved and port 1 never answers.
func endless(asked, dialed chan<- bool) Outside {
	return Outside{
		Lookup: func(ctx context.Context, name string) ([]netip.Addr, error) {
			asked <- true
			<-ctx.Done()
			return nil, ctx.Err()
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Port() == 1 {
				dialed <- true
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return new(net.Dialer).DialContext(ctx, "tcp", to.String())
		},
		Deny: func(string) {},
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add("CONNECT api.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
	f.Add("POST http://api.example.test:80/x?y HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello")
	f.Add("GET http://[::1]/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := readRequest(bufio.NewReaderSize(strings.NewReader(s), maxHead))
		if err != nil {
			return
		}
		if r.host == "" || r.port == 0 || strings.ContainsAny(r.host, "@/ \r\n") {
			t.Fatalf("%q gives %+v", s, r)
		}
		if r.connect {
			return
		}
		// What goes on is one request by the standard library too, for the host that was checked.
		in, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(r.head))))
		if err != nil {
			return // a server may be stricter
		}
		host, port, err := splitAuthority(in.Host, 80)
		if err != nil || host != r.host || port != r.port || in.URL.IsAbs() || r.body >= 0 && in.ContentLength != r.body {
			t.Fatalf("%q goes on as %q, %+v", s, r.head, r)
		}
	})
}

func FuzzReadSocks(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x04host\x00\x50"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var said strings.Builder
		host, _, err := readSocks(struct {
			io.Reader
			io.Writer
		}{strings.NewReader(string(in)), &said})
		if err == nil && (len(host) > 255 || said.String() != "\x05\x00") {
			t.Fatalf("%q gives %q after %q", in, host, said.String())
		}
	})
}
