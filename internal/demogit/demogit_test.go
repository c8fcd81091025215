package demogit

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// served is a server of one bare repository, and a way to ask it.
func served(t *testing.T) (s *Server, ask func(request string) string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", "--bare", filepath.Join(root, "repo.git")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	s, err := Serve(context.Background(), root, "open sesame", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CA) {
		t.Fatal("the certificate is none")
	}
	return s, func(request string) string {
		c, err := tls.Dial("tcp", s.Host(), &tls.Config{RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
}

// §15.3: who has the token is answered by git, who has it not by nobody.
func Test_15_3_TheDemosServerWantsItsToken(t *testing.T) {
	s, ask := served(t)
	const refs = "GET /repo.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n"
	const good = "Authorization: Basic YWRhOm9wZW4gc2VzYW1l\r\n"
	for request, want := range map[string]string{
		refs + good + "\r\n": "HTTP/1.1 200 OK",
		refs + "\r\n":        "HTTP/1.1 401 ",
		refs + "Authorization: Basic YWRhOm9wZW4=\r\n\r\n":                                           "HTTP/1.1 401 ",
		"GET /../../etc/passwd HTTP/1.1\r\n" + good + "\r\n":                                         "HTTP/1.1 500 ",
		"POST /repo.git/git-receive-pack HTTP/1.1\r\nContent-Length: 9999999\r\n" + good + "\r\n":    "HTTP/1.1 400 ",
		"POST /repo.git/git-receive-pack HTTP/1.1\r\nContent-Length: -1\r\n" + good + "\r\n":         "HTTP/1.1 400 ",
		"POST /repo.git/git-receive-pack HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + good + "\r\n": "HTTP/1.1 400 ",
		"nothing\r\n": "HTTP/1.1 400 ",
	} {
		if got := ask(request); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q", request, got)
		}
	}
	if s.Pushes() != 0 {
		t.Errorf("%d pushes were counted", s.Pushes())
	}
}

// FuzzRequest: whatever is sent, a request that is taken has a body of the length that it said.
func FuzzRequest(f *testing.F) {
	f.Add("POST /a?b HTTP/1.1\r\nContent-Length: 2\r\n\r\nxy")
	f.Add("GET / HTTP/1.1\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := readRequest(bufio.NewReader(strings.NewReader(text)))
		if err == nil && (len(r.body) > maxBody || r.headers["content-length"] == "" && len(r.body) != 0) {
			t.Errorf("%q: a body of %d bytes", text, len(r.body))
		}
	})
}
