package binding_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hcpx/internal/binding"
	"hcpx/internal/manifest"
	"hcpx/internal/vault"
)

// minter is what a process of the single-flight test is told.
type minter struct {
	Vault  vaultAt
	Source manifest.Source
	Cert   string
	Ahead  time.Duration
}

type vaultAt struct{ Dir, Config string }

const minterEnv = "HCPX_TEST_MINTER"

func TestMain(m *testing.M) {
	if told := os.Getenv(minterEnv); told != "" {
		os.Exit(mintOnce(told))
	}
	os.Exit(m.Run())
}

// mintOnce mints as a process of its own does, and prints the token: its caller is the test.
func mintOnce(told string) int {
	var w minter
	if err := json.Unmarshal([]byte(told), &w); err != nil {
		fmt.Println(err)
		return 1
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(w.Cert))
	hub := binding.NewHub(binding.Options{
		Secrets: vault.Open(vault.Options{Dir: w.Vault.Dir, Config: w.Vault.Config}),
		Now:     func() time.Time { return time.Now().Add(w.Ahead) },
		Net:     binding.Net{Dial: binding.Dial, Roots: roots},
	})
	m, err := hub.Mint(context.Background(), bound(binding.User, &w.Source), scope("transit", ""), time.Minute)
	if err != nil {
		fmt.Println(err, err.Details)
		return 1
	}
	env, _, err := m.Env([]manifest.EnvVar{{Name: "A", Value: "{token}"}})
	if err != nil {
		return 1
	}
	fmt.Println(env[0], m.Reused())
	return 0
}

// §8.4: refresh is single-flight across processes: of twenty that find the token over, one asks the server, and all have
// the same new one. The refresh token that replaces the old one is kept for the next.
func Test_8_4_TwentyProcessesRenewOnce(t *testing.T) {
	r := newRig(t)
	at := vaultAt{filepath.Join(t.TempDir(), "secrets"), filepath.Join(t.TempDir(), "config")}
	o := r.options()
	o.Secrets = vault.Open(vault.Options{Dir: at.Dir, Config: at.Config})
	r.Hub = binding.NewHub(o)
	b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
	r.connect(b, s, "")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.srv.Certificate().Raw})
	for round := 1; round <= 2; round++ {
		told, err := json.Marshal(minter{at, *b.From, string(cert), time.Duration(round) * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		said := make([]string, 20)
		for i := range said {
			wg.Go(func() {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), minterEnv+"="+string(told))
				out, err := cmd.Output()
				if err != nil {
					t.Errorf("process %d: %v", i, err)
				}
				said[i] = string(out)
			})
		}
		wg.Wait()
		fresh := 0
		for i, line := range said {
			token, reused, _ := strings.Cut(strings.TrimSpace(line), " ")
			first, _, _ := strings.Cut(strings.TrimSpace(said[0]), " ")
			if reused == "false" {
				fresh++
			}
			if token != first || len(token) < 10 {
				t.Errorf("process %d has another token: %s", i, line)
			}
		}
		if fresh != 1 || r.asked("refresh_token") != round {
			t.Errorf("round %d: %d processes renewed, the server was asked %d times", round, fresh, r.asked("refresh_token"))
		}
	}
}

// §8.3: only the one browser that bears the state, at the right path and host, ends the wait; whatever else knocks at the
// port is turned away.
func Test_8_3_TheLoopbackPortTakesOneAnswer(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
	p := r.person("")
	p.Visit = func(address, _ string) {
		u, err := url.Parse(address)
		if err != nil {
			t.Error(err)
			return
		}
		q := u.Query()
		back, err := url.Parse(q.Get("redirect_uri"))
		if err != nil || back.Hostname() != "127.0.0.1" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("state")) != 43 {
			t.Errorf("%s", address)
			return
		}
		idle, err := net.Dial("tcp", back.Host) // a browser opens connections ahead
		if err != nil {
			t.Error(err)
			return
		}
		defer idle.Close()
		state := url.QueryEscape(q.Get("state"))
		for _, raw := range []string{
			"GET /callback?code=stolen&state=guessed HTTP/1.1\r\nHost: " + back.Host + "\r\n\r\n",
			"GET /callback?code=stolen HTTP/1.1\r\nHost: " + back.Host + "\r\n\r\n",
			"GET /callback?code=stolen&state=" + state + " HTTP/1.1\r\nHost: evil.example\r\n\r\n",
			"GET /callback?code=stolen&state=" + state + " HTTP/1.1\r\nHost: " + back.Host + "\r\nHost: evil.example\r\n\r\n",
			"POST /callback?code=stolen&state=" + state + " HTTP/1.1\r\nHost: " + back.Host + "\r\n\r\n",
			"GET /other?code=stolen&state=" + state + " HTTP/1.1\r\nHost: " + back.Host + "\r\n\r\n",
			"nonsense\r\n\r\n",
		} {
			if got := knock(t, back.Host, raw); !strings.HasPrefix(got, "HTTP/1.1 40") {
				t.Errorf("%q: %q", raw, got)
			}
		}
		go r.browse(address)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := r.Connect(ctx, b, s, p); err != nil {
		t.Fatalf("%v %v", err, err.Details)
	}
	if requests, _ := r.sent(); r.asked("authorization_code") != 1 || len(requests[0].Get("code_verifier")) != 43 {
		t.Errorf("%d codes were used", r.asked("authorization_code"))
	}
}

// A refusal in the browser, and an answer that names another issuer, connect nothing.
func Test_8_3_ARefusalInTheBrowserConnectsNothing(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct{ issuer, answer, want string }{
		"refused":      {"", "error=access_denied", "refused: access_denied"},
		"other issuer": {"https://id.example.org", "code=stolen&iss=https%3A%2F%2Fevil.example", "does not come from https://id.example.org"},
		"no issuer":    {"https://id.example.org", "code=stolen", "does not come from https://id.example.org"},
		"no code":      {"", "a=b", "without a code"},
	} {
		src := r.source(manifest.KindOAuth2, "native")
		src.Issuer = c.issuer
		p := r.person("")
		p.Visit = func(address, _ string) {
			u, err := url.Parse(address)
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				answer, err := http.Get(u.Query().Get("redirect_uri") + "?" + c.answer + "&state=" + url.QueryEscape(u.Query().Get("state")))
				if err != nil {
					t.Error(err)
					return
				}
				answer.Body.Close()
			}()
		}
		_, err := r.Connect(t.Context(), bound(binding.User, src), scope("transit", ""), p)
		if err == nil || !strings.Contains(err.Message, c.want) || len(r.box.held) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.asked("authorization_code") > 0 {
		t.Error("a code was used")
	}
}

func knock(t *testing.T, host, raw string) string {
	t.Helper()
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(raw)); err != nil {
		t.Error(err)
	}
	answer := make([]byte, 512)
	n, err := conn.Read(answer)
	if err != nil {
		t.Error(err)
	}
	return string(answer[:n])
}
