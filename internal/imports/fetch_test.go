package imports

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

const small = `{"openapi":"3.0.0","servers":[{"url":"/v1"}],"paths":{"/a":{"get":{"operationId":"a"}}}}`

// serving answers over TLS on the loopback; seen are the requests that reached it.
func serving(t *testing.T) (address string, roots *x509.CertPool, seen *[]*http.Request) {
	t.Helper()
	seen = &[]*http.Request{}
	mux := http.NewServeMux()
	mux.HandleFunc("/doc", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "id", Value: "1"})
		_, _ = io.WriteString(w, small)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/doc", http.StatusFound) })
	mux.HandleFunc("/again", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/doc", http.StatusFound)
	})
	mux.HandleFunc("/inside", func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := strings.Cut(r.Host, ":")
		http.Redirect(w, r, "https://localhost:"+port+"/doc", http.StatusFound)
	})
	mux.HandleFunc("/credential", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://ada:pw@"+r.Host+"/doc", http.StatusFound)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for range maxDocument>>20 + 2 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r)
		mux.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.URL, roots, seen
}

// §15.6: a document is fetched by GETs that carry nothing of this machine; it says what relative servers start from.
func Test_15_6_Fetch(t *testing.T) {
	address, roots, seen := serving(t)
	src, err := (&fetcher{roots: roots}).get(context.Background(), address+"/moved?token=hidden")
	if err != nil {
		t.Fatal(err.Message)
	}
	if string(src.Text) != small || src.URL != address+"/doc" || strings.Contains(src.Name, "hidden") {
		t.Errorf("%s, %s: %s", src.Name, src.URL, src.Text)
	}
	for _, r := range *seen {
		for _, header := range []string{"Cookie", "Authorization", "Referer"} {
			if r.Header.Get(header) != "" {
				t.Errorf("%s was sent to %s", header, r.URL)
			}
		}
	}
	if m := made(t, src, Options{}); m.Report.Server != address+"/v1" {
		t.Errorf("the server is %s", m.Report.Server)
	}
}

// §15.6, §10.2: what is no document, or no address that one is fetched from, is refused by its cause.
func Test_15_6_FetchRefusals(t *testing.T) {
	address, roots, seen := serving(t)
	host := strings.TrimPrefix(address, "https://")
	for name, c := range map[string]struct {
		url    string
		roots  *x509.CertPool
		code   protocol.Code
		says   string
		reason reason
	}{
		"absent":           {address + "/none?token=hidden", roots, protocol.ImportFailed, "status 404", unreachable},
		"to http":          {address + "/plain", roots, protocol.ImportFailed, "not https", unreachable},
		"to a credential":  {address + "/credential", roots, protocol.ImportFailed, "not https", unreachable},
		"without end":      {address + "/again", roots, protocol.ImportFailed, "too often", unreachable},
		"to this machine":  {address + "/inside", roots, protocol.ImportFailed, "no public address", unreachable},
		"unproven":         {address + "/doc", x509.NewCertPool(), protocol.ImportFailed, "certificate", unreachable},
		"large":            {address + "/large", roots, protocol.ImportFailed, "larger than", tooLarge},
		"http elsewhere":   {"http://harbour.example/doc", roots, protocol.UsageError, "https", ""},
		"a credential":     {"https://ada:pw@" + host + "/doc", roots, protocol.UsageError, "no credential", ""},
		"metadata":         {"https://169.254.169.254/doc", roots, protocol.ImportFailed, "no public address", unreachable},
		"nobody":           {"https://127.0.0.1:1/doc", roots, protocol.ImportFailed, "connection failed", unreachable},
		"another protocol": {strings.Replace(address, "https", "http", 1) + "/doc", roots, protocol.ImportFailed, "status 400", unreachable},
	} {
		before := len(*seen)
		_, err := (&fetcher{roots: c.roots}).get(context.Background(), c.url)
		if err == nil || err.Code != c.code || !strings.Contains(err.Message, c.says) || strings.Contains(err.Message, "hidden") || strings.Contains(err.Message, "pw") || err.Hint == "" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.reason != "" && err.Details["reason"] != string(c.reason) {
			t.Errorf("%s: reason %v", name, err.Details["reason"])
		}
		if name == "to this machine" && len(*seen) != before+1 {
			t.Errorf("the redirect was followed to this machine")
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (&fetcher{roots: roots}).get(ctx, address+"/doc"); err == nil || !strings.Contains(err.Message, "cancelled") {
		t.Errorf("cancelled: %v", err)
	}
}

// §10.2: a name leads to public addresses alone, also the one that was typed; a literal leads to itself.
func Test_10_2_WhereADocumentMayCome(t *testing.T) {
	for _, c := range []struct {
		typed, host, to string
		want            bool
	}{
		{"a.example", "a.example", "93.184.216.34", true},
		{"a.example", "a.example", "127.0.0.1", false},
		{"a.example", "a.example", "10.0.0.1", false},
		{"a.example", "a.example", "169.254.169.254", false},
		{"10.0.0.1", "10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "a.example", "10.0.0.1", false},
		{"localhost", "localhost", "127.0.0.1", true},
		{"localhost", "localhost", "10.0.0.1", false},
		{"127.0.0.1", "127.0.0.1", "127.0.0.1", true},
		{"169.254.169.254", "169.254.169.254", "169.254.169.254", false},
	} {
		if got := (&fetcher{typed: c.typed}).allowed(c.host, netip.MustParseAddr(c.to)); got != c.want {
			t.Errorf("%s, from %s to %s: %v", c.typed, c.host, c.to, got)
		}
	}
	if got := shown(&url.URL{Scheme: "https", Host: "a.example", Path: "/x", RawQuery: "key=1", Fragment: "f"}); got != "https://a.example/x" {
		t.Error(got)
	}
}

// §15.6: an address of this machine may be http, and what it gives becomes a pack.
func Test_15_6_FromAnAddressToAPack(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, small) }))
	t.Cleanup(s.Close)
	out := filepath.Join(t.TempDir(), "pack")
	report, err := OpenAPI(context.Background(), Options{Source: s.URL + "/openapi.json", ID: "small", Out: out})
	if err != nil {
		t.Fatal(err.Message)
	}
	if text, err := os.ReadFile(filepath.Join(out, "surface.json")); err != nil || report.Server != s.URL+"/v1" || !strings.Contains(string(text), report.Server) {
		t.Errorf("%s, %v: %s", report.Server, err, text)
	}
}
