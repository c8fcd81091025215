// Package demogit is the git server of the demo: over https on the loopback, for one token, so that the approved push
// of §15.3 goes to a real one. It speaks as much HTTP as git needs, and git's own http-backend answers.
//
// It starts git, and nothing that a pack or a caller names; that is why it may start a program outside of the sandbox.
// No command but demo has it run. The server refuses what it does not know: a body that is long or has no length, and
// whoever has not the token.
package demogit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxBody is how much of a request is taken.
const maxBody = 1 << 20

// Server answers one request a connection.
type Server struct {
	ctx     context.Context
	now     func() time.Time
	listen  net.Listener
	backend string
	root    string
	basic   string // what Authorization must be
	CA      []byte // its certificate, PEM
	pushes  atomic.Int64
	done    sync.WaitGroup
}

// Serve starts a server of the repositories below root, for ada with the token.
func Serve(ctx context.Context, root, token string, now func() time.Time) (*Server, error) {
	out, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("the demo needs git: %w", err)
	}
	s := &Server{ctx: ctx, now: now, root: root, backend: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		basic: "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:"+token))}
	if s.backend, err = exec.LookPath(s.backend); err != nil {
		return nil, fmt.Errorf("the demo needs git-http-backend: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now().Add(-time.Hour), NotAfter: now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	s.listen, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}})
	if err != nil {
		return nil, err
	}
	s.done.Go(s.accept)
	return s, nil
}

// Host is its address and port.
func (s *Server) Host() string { return s.listen.Addr().String() }

// Pushes is how often it was asked to change something, by one who has the token.
func (s *Server) Pushes() int64 { return s.pushes.Load() }

// Close ends the server and waits for what it still answers.
func (s *Server) Close() error {
	err := s.listen.Close()
	s.done.Wait()
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.listen.Accept()
		if err != nil {
			return
		}
		s.done.Go(func() {
			defer c.Close()
			if c.SetDeadline(s.now().Add(20*time.Second)) != nil {
				return
			}
			if err := s.answer(c); err != nil {
				_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") // the client may be gone
			}
		})
	}
}

// request is one request of git.
type request struct {
	method, path, query string
	headers             map[string]string
	body                []byte
}

func (s *Server) answer(c net.Conn) error {
	r, err := readRequest(bufio.NewReader(c))
	if err != nil {
		return err
	}
	if r.headers["authorization"] != s.basic {
		_, err := io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"demo\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
		return err
	}
	if r.method == "POST" && strings.HasSuffix(r.path, "/git-receive-pack") {
		s.pushes.Add(1)
	}
	git := exec.CommandContext(s.ctx, s.backend)
	git.Dir, git.Stdin = s.root, bytes.NewReader(r.body)
	git.Env = []string{"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + s.root, "REQUEST_METHOD=" + r.method,
		"PATH_INFO=" + r.path, "QUERY_STRING=" + r.query, "CONTENT_TYPE=" + r.headers["content-type"], "CONTENT_LENGTH=" + strconv.Itoa(len(r.body)),
		"HTTP_CONTENT_ENCODING=" + r.headers["content-encoding"], "GIT_PROTOCOL=" + r.headers["git-protocol"]}
	out, err := git.Output()
	if err != nil {
		return err
	}
	head, body, ok := bytes.Cut(out, []byte("\r\n\r\n"))
	if !ok {
		return errors.New("git-http-backend gave no answer")
	}
	status := "200 OK"
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if said, ok := strings.CutPrefix(line, "Status: "); ok {
			status = said
		}
	}
	_, err = fmt.Fprintf(c, "HTTP/1.1 %s\r\n%s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", status, head, len(body), body)
	return err
}

func readRequest(in *bufio.Reader) (*request, error) {
	line := func() (string, error) {
		text, err := in.ReadSlice('\n')
		return strings.TrimRight(string(text), "\r\n"), err
	}
	first, err := line()
	words := strings.Split(first, " ")
	if err != nil || len(words) != 3 {
		return nil, errors.Join(err, errors.New("no request"))
	}
	r := &request{method: words[0], headers: map[string]string{}}
	r.path, r.query, _ = strings.Cut(words[1], "?")
	for range 100 {
		text, err := line()
		if err != nil {
			return nil, err
		}
		if text == "" {
			n, err := strconv.Atoi("0" + r.headers["content-length"])
			if err != nil || n > maxBody || r.headers["transfer-encoding"] != "" {
				return nil, errors.New("a body that is not taken")
			}
			r.body = make([]byte, n)
			_, err = io.ReadFull(in, r.body)
			return r, err
		}
		name, value, _ := strings.Cut(text, ":")
		r.headers[strings.ToLower(name)] = strings.TrimSpace(value)
	}
	return nil, errors.New("too many headers")
}
