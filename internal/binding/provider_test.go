package binding_test

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"hcpx/internal/binding"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// provider is an OpenID provider made of a library that others build theirs of, over TLS on the loopback. What a
// provider seldom does, to fail, to hang, to answer nonsense, stands in front of it as a fault.
type provider struct {
	*storage.Storage
	t     *testing.T
	srv   *httptest.Server
	roots *x509.CertPool

	mu       sync.Mutex
	fault    func(w http.ResponseWriter, r *http.Request) bool // answers in place of the provider
	requests []url.Values                                      // of the token endpoint
	auth     []string                                          // their Authorization headers
	slow     atomic.Int32                                      // polls that the storage is too slow for
	user     string
	codes    chan string // of the device flow
}

// public is a device that holds no secret.
type public struct{ *storage.Client }

func (public) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodNone }
func (public) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }

const (
	webSecret    = "web secret/with+signs&more="
	deviceSecret = "device-secret-of-a-client"
)

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t, codes: make(chan string, 8)}
	var handler http.Handler
	p.srv = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.interfere(w, r) {
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(p.srv.Close)
	issuer := p.srv.URL
	p.roots = x509.NewCertPool()
	p.roots.AddCert(p.srv.Certificate())
	users := storage.NewUserStore(issuer)
	p.user = users.GetUserByID("id1").Username
	p.Storage = storage.NewStorageWithClients(users, map[string]*storage.Client{
		"native": storage.NativeClient("native", "http://127.0.0.1/callback"),
		"web":    storage.WebClient("web", webSecret, "http://127.0.0.1/callback"),
		"device": storage.DeviceClient("device", deviceSecret), "public": storage.DeviceClient("public", ""),
	})
	handler = exampleop.SetupServer(issuer, p, slog.New(slog.DiscardHandler), false)
	return p
}

func (p *provider) interfere(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/oauth/token" && r.URL.Path != "/device_authorization" && r.URL.Path != "/revoke" {
		return false
	}
	p.mu.Lock()
	fault := p.fault
	body, err := io.ReadAll(r.Body) // whole, so that a client that goes away is seen
	if err != nil {
		p.t.Error(err)
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if r.URL.Path == "/oauth/token" {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			p.t.Error(err)
		}
		p.requests, p.auth = append(p.requests, form), append(p.auth, r.Header.Get("Authorization"))
	}
	p.mu.Unlock()
	return fault != nil && fault(w, r)
}

// faulty puts a fault before the token endpoint, or takes it away.
func (p *provider) faulty(f func(w http.ResponseWriter, r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// sent are the requests to the token endpoint so far, and their Authorization headers.
func (p *provider) sent() ([]url.Values, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests), slices.Clone(p.auth)
}

// count is how many they are.
func (p *provider) count() int {
	requests, _ := p.sent()
	return len(requests)
}

// asked counts the requests of a grant.
func (p *provider) asked(grant string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, form := range p.requests {
		if form.Get("grant_type") == grant {
			n++
		}
	}
	return n
}

func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := p.Storage.GetClientByClientID(ctx, id)
	if plain, ok := c.(*storage.Client); ok && id == "public" {
		return public{plain}, err
	}
	return c, err
}

// GetDeviceAuthorizatonState is too slow as often as the test says, and the provider answers slow_down then.
func (p *provider) GetDeviceAuthorizatonState(ctx context.Context, client, code string) (*op.DeviceAuthorizationState, error) {
	if p.slow.Add(-1) >= 0 {
		return nil, context.DeadlineExceeded
	}
	return p.Storage.GetDeviceAuthorizatonState(ctx, client, code)
}

// source is a valid source at this provider.
func (p *provider) source(kind, client string) *manifest.Source {
	at := p.srv.URL
	s := &manifest.Source{Kind: kind, TokenURL: at + "/oauth/token", ClientID: client, ClientAuth: manifest.ClientNone, Scopes: []string{"openid", "offline_access"}}
	switch kind {
	case manifest.KindOAuth2:
		s.Flow, s.AuthURL = manifest.FlowCode, at+"/auth"
		if client == "device" || client == "public" {
			s.Flow, s.AuthURL = manifest.FlowDevice, at+"/device_authorization"
		}
	case manifest.KindTokenExchange:
		const access = "urn:ietf:params:oauth:token-type:access_token"
		s.SubjectType, s.RequestedType = access, access
	}
	if client == "web" || client == "device" || kind == manifest.KindClientCredentials {
		s.ClientAuth = manifest.ClientBasic
	}
	return s
}

// bound is a binding with the source, as the manifest room would have read it.
func bound(mode string, src *manifest.Source) *manifest.Binding {
	hub := "keyring"
	if mode == binding.Local {
		hub = "local-credential"
	}
	return &manifest.Binding{Mode: mode, Hub: hub, From: src, Source: jsondoc.Obj(jsondoc.Member{Key: "kind", Value: jsondoc.Str(src.Kind)}),
		Inject: []manifest.EnvVar{{Name: "PACK_TOKEN", Value: "{token}"}}}
}

// clock is a time that a test moves.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) forward(d time.Duration) { c.offset.Add(int64(d)) }
func scope(pack, family string) binding.Scope {
	return binding.Scope{Tenant: "local", Session: "default", Owner: "human:ada", Pack: pack, Family: family}
}

// rig is a hub at a provider.
type rig struct {
	*provider
	binding.Hub
	box    *box
	clock  *clock
	pauses []time.Duration // that polls were waited for
}

func newRig(t *testing.T) *rig {
	r := &rig{provider: newProvider(t), box: newBox(), clock: &clock{}}
	r.Hub = binding.NewHub(r.options())
	return r
}

func (r *rig) options() binding.Options {
	return binding.Options{
		Secrets: r.box, Now: r.clock.now, Net: binding.Net{Dial: binding.Dial, Roots: r.roots, Timeout: 5 * time.Second},
		Getenv: func(name string) string { return "value-of-" + name },
		Sleep: func(ctx context.Context, d time.Duration) error {
			r.pauses = append(r.pauses, d)
			return ctx.Err()
		},
	}
}

// person agrees in a browser, and types what he is asked for.
func (r *rig) person(typed string) binding.Person {
	return binding.Person{
		Secret: func(context.Context, string) ([]byte, *protocol.Error) { return []byte(typed), nil },
		Login: func(context.Context, string) (string, []byte, *protocol.Error) {
			return "ada", []byte(typed), nil
		},
		Visit: func(address, code string) {
			if code != "" {
				r.codes <- code
				return
			}
			go r.browse(address)
		},
	}
}

// browse follows the pages as a browser does: log in, agree, come back to the port of the loopback.
func (r *rig) browse(address string) {
	c := &http.Client{Transport: r.srv.Client().Transport}
	page, err := c.Get(address)
	if err != nil {
		r.t.Error(err)
		return
	}
	page.Body.Close()
	login := page.Request.URL
	done, err := c.PostForm(login.Scheme+"://"+login.Host+"/login/username",
		url.Values{"username": {r.user}, "password": {"verysecure"}, "id": {login.Query().Get("authRequestID")}})
	if err != nil {
		r.t.Error(err)
		return
	}
	defer done.Body.Close()
	if done.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(done.Body)
		r.t.Errorf("the browser ended at %s with %s: %s", done.Request.URL, done.Status, text)
	}
}

// connect brings a binding about, or ends the test.
func (r *rig) connect(b *manifest.Binding, s binding.Scope, typed string) binding.Made {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	made, err := r.Connect(ctx, b, s, r.person(typed))
	if err != nil {
		r.t.Fatalf("connect: %v %v", err, err.Details)
	}
	return made
}

// token mints for a run of that length, and says whether it was handed out again.
func (r *rig) token(b *manifest.Binding, s binding.Scope, lasts time.Duration) (string, bool) {
	r.t.Helper()
	m, err := r.Mint(r.t.Context(), b, s, lasts)
	if err != nil {
		r.t.Fatalf("mint: %v %v", err, err.Details)
	}
	defer m.Release()
	return valueOf(r.t, m), m.Reused()
}

func valueOf(t *testing.T, m *binding.Minted) string {
	t.Helper()
	env, _, err := m.Env([]manifest.EnvVar{{Name: "A", Value: "{token}"}})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(env[0], "A=")
}

// refusedMint is the reason of a mint that must fail, with no credential.
func (r *rig) refusedMint(b *manifest.Binding, s binding.Scope) *protocol.Error {
	r.t.Helper()
	m, err := r.Mint(r.t.Context(), b, s, time.Minute)
	if m != nil || err == nil {
		r.t.Fatalf("minted %v, %v", m, err)
	}
	if err.Code != protocol.BindingFailed {
		r.t.Errorf("%v", err)
	}
	return err
}
