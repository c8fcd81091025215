package binding_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/binding"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// §8.3, §8.4: authorization code with PKCE at a real provider, then reuse while the token outlives the run, then renewal
// with a refresh token that changes each time.
func Test_8_4_CodeWithPKCEThenReuseThenRenewal(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
	if made := r.connect(b, s, ""); !made.Asked || !made.Keeps || made.Shared {
		t.Errorf("%+v", made)
	}
	first, reused := r.token(b, s, time.Minute)
	if !reused || r.asked("refresh_token") != 0 {
		t.Errorf("reused %v after %d renewals", reused, r.asked("refresh_token"))
	}
	if again, _ := r.token(b, s, time.Minute); again != first {
		t.Error("another token while the first lasts")
	}
	long, reused := r.token(b, s, 5*time.Minute) // a token of five minutes does not outlive a run of five
	if reused || long == first || r.asked("refresh_token") != 1 {
		t.Errorf("reused %v, renewals %d", reused, r.asked("refresh_token"))
	}
	for n := 2; n < 5; n++ {
		r.clock.forward(time.Hour)
		next, reused := r.token(b, s, time.Minute)
		if reused || next == long || r.asked("refresh_token") != n {
			t.Errorf("renewal %d: reused %v, asked %d", n, reused, r.asked("refresh_token"))
		}
		long = next
	}
}

// §8.4: a clock that went back proves no token; the allowance for clocks that differ is on the safe side.
func Test_8_4_ClockSkewIsAllowedFor(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
	r.connect(b, s, "")
	for _, c := range []struct {
		at     time.Duration
		lasts  time.Duration
		reused bool
	}{
		{-20 * time.Second, time.Minute, true},
		{3 * time.Minute, time.Minute, true},
		{4*time.Minute - 20*time.Second, time.Minute, false}, // it would end within the allowance
	} {
		r.clock.offset.Store(int64(c.at))
		if _, reused := r.token(b, s, c.lasts); reused != c.reused {
			t.Errorf("at %s: reused %v", c.at, reused)
		}
	}
	r.clock.offset.Store(-int64(time.Hour))
	if _, reused := r.token(b, s, time.Second); reused {
		t.Error("a token of the future was handed out")
	}
}

// §8.3: the device flow; pending and slow_down are waited for as RFC 8628 says.
func Test_8_3_DeviceFlowWaitsAsItIsTold(t *testing.T) {
	for _, client := range []string{"public", "device"} {
		t.Run(client, func(t *testing.T) {
			r := newRig(t)
			b, s := bound(binding.User, r.source(manifest.KindOAuth2, client)), scope("transit", "")
			b.From.Scopes = []string{"openid"}
			p, polls := r.person(deviceSecret), 0
			r.slow.Store(0)
			var code string
			p.Visit = func(_, c string) { code = c }
			r.faulty(func(w http.ResponseWriter, req *http.Request) bool {
				if polls++; strings.HasSuffix(req.URL.Path, "token") {
					switch polls {
					case 3, 4:
						r.slow.Store(1)
					case 5:
						w.WriteHeader(http.StatusBadGateway)
						return true
					case 6:
						if err := r.CompleteDeviceAuthorization(req.Context(), code, "id1"); err != nil {
							t.Error(err)
						}
					}
				}
				return false
			})
			if made, err := r.Connect(t.Context(), b, s, p); err != nil || !made.Asked {
				t.Fatalf("%+v, %v", made, err)
			}
			want := []time.Duration{5 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second}
			if diff := cmp.Diff(want, r.pauses); diff != "" {
				t.Errorf("pauses: %s", diff)
			}
			if _, reused := r.token(b, s, time.Minute); !reused {
				t.Error("the token of connect is not used")
			}
			r.clock.forward(time.Hour)
			if err := r.refusedMint(b, s); err.Details["reason"] != string(binding.Revoked) || err.Hint != "hcpx connect transit" {
				t.Errorf("a token without renewal: %v %v", err, err.Details)
			}
		})
	}
}

func Test_8_3_ADeviceFlowThatIsDeniedOrForgottenConnectsNothing(t *testing.T) {
	for word, c := range map[string]struct {
		decide func(r *rig, code string)
		want   binding.Reason
	}{
		"denied": {func(r *rig, code string) {
			if err := r.DenyDeviceAuthorization(r.t.Context(), code); err != nil {
				r.t.Error(err)
			}
		}, binding.Denied},
	} {
		t.Run(word, func(t *testing.T) {
			r := newRig(t)
			b, s := bound(binding.User, r.source(manifest.KindOAuth2, "public")), scope("transit", "")
			p := r.person("")
			p.Visit = func(_, code string) { c.decide(r, code) }
			_, err := r.Connect(t.Context(), b, s, p)
			if err == nil || err.Details["reason"] != string(c.want) || len(r.box.held) > 0 {
				t.Errorf("%v, kept %d", err, len(r.box.held))
			}
			if err := r.refusedMint(b, s); err.Details["reason"] != string(binding.Missing) {
				t.Error(err)
			}
		})
	}
}

// §8.4: a refresh token that was revoked is told as that, and no other credential is tried.
func Test_8_4_RevocationIsToldAndNothingElseIsTried(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
	r.connect(b, s, "")
	if err := r.TerminateSession(t.Context(), "id1", "native"); err != nil {
		t.Fatal(err)
	}
	r.clock.forward(time.Hour)
	for range 2 {
		before := r.count()
		err := r.refusedMint(b, s)
		if err.Details["reason"] != string(binding.Revoked) || err.Hint != "hcpx connect transit" {
			t.Errorf("%v %v", err, err.Details)
		}
		if r.count() != before+1 {
			t.Errorf("%d requests for one mint", r.count()-before)
		}
	}
	// Connecting again asks again, since what is kept is dead.
	s.Here = true
	if made := r.connect(b, s, ""); !made.Asked {
		t.Error("a dead consent was taken")
	}
	if _, reused := r.token(b, s, time.Minute); !reused {
		t.Error("not connected anew")
	}
}

// §8.3: client_credentials, in both ways to say who the client is; a token is handed out again while it lasts.
func Test_8_3_ClientCredentials(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.Mothership, r.source(manifest.KindClientCredentials, "sid1")), scope("ledger", "")
	r.connect(b, s, "verysecret")
	first, reused := r.token(b, s, time.Minute)
	if !reused || r.asked("client_credentials") != 1 {
		t.Errorf("reused %v, asked %d", reused, r.asked("client_credentials"))
	}
	r.clock.forward(time.Hour)
	if next, reused := r.token(b, s, time.Minute); reused || next == first {
		t.Error("an old token")
	}
	if requests, auth := r.sent(); requests[0].Get("client_secret") != "" || !strings.HasPrefix(auth[0], "Basic ") {
		t.Errorf("%v %q", requests[0], auth[0])
	}
	// client_auth post says it in the body, and only there.
	posting := bound(binding.Mothership, r.source(manifest.KindClientCredentials, "sid1"))
	posting.From.ClientAuth = manifest.ClientPost
	r.faulty(status(200, `{"access_token":"a-good-token","token_type":"Bearer"}`))
	r.connect(posting, scope("posting", ""), "verysecret")
	r.faulty(nil)
	requests, auth := r.sent()
	if last := requests[len(requests)-1]; last.Get("client_id") != "sid1" || last.Get("client_secret") != "verysecret" || auth[len(auth)-1] != "" {
		t.Errorf("%v %q", last, auth[len(auth)-1])
	}
	wrong := scope("other", "")
	_, err := r.Connect(t.Context(), b, wrong, r.person("not-the-secret"))
	if err == nil || err.Details["reason"] != string(binding.Denied) || strings.Contains(err.Error(), "not-the-secret") {
		t.Errorf("%v", err)
	}
}

// §8.3: token exchange (RFC 8693), of a subject that is asked for or that the machine has.
func Test_8_3_TokenExchange(t *testing.T) {
	r := newRig(t)
	user := bound(binding.User, r.source(manifest.KindOAuth2, "native"))
	r.connect(user, scope("login", ""), "")
	subject, _ := r.token(user, scope("login", ""), time.Minute)

	b, s := bound(binding.Mothership, r.source(manifest.KindTokenExchange, "web")), scope("ledger", "")
	b.From.Scopes = []string{"openid"}
	p := r.person("")
	var asked []string
	p.Secret = typedInTurn(&asked, webSecret, subject)
	if _, err := r.Connect(t.Context(), b, s, p); err != nil {
		t.Fatalf("%v %v", err, err.Details)
	}
	if len(asked) != 2 || !strings.Contains(asked[0], "client secret of web") || !strings.Contains(asked[1], "exchanged") {
		t.Errorf("asked for %q", asked)
	}
	got, reused := r.token(b, s, time.Minute)
	if !reused || got == subject {
		t.Errorf("reused %v", reused)
	}
	requests, _ := r.sent()
	if last := requests[len(requests)-1]; last.Get("subject_token") != subject || last.Get("requested_token_type") == "" {
		t.Error("no exchange of the subject")
	}
	// A subject that is refused while the clocks are far apart is laid to the clocks.
	r.clock.forward(time.Hour)
	if err := r.TerminateSession(t.Context(), "id1", "native"); err != nil {
		t.Fatal(err)
	}
	b.From.TokenURL += "?again"
	p.Secret = typedInTurn(new([]string), webSecret, "no-token-at-all")
	_, err := r.Connect(t.Context(), b, scope("late", ""), p)
	if err == nil || err.Details["reason"] != string(binding.Clock) || !strings.Contains(err.Message, "s apart") {
		t.Errorf("%v", err)
	}
}

// typedInTurn answers one secret after the other.
func typedInTurn(asked *[]string, answers ...string) func(ctx context.Context, what string) ([]byte, *protocol.Error) {
	return func(_ context.Context, what string) ([]byte, *protocol.Error) {
		*asked = append(*asked, what)
		return []byte(answers[len(*asked)-1]), nil
	}
}

// §8.5: a family shares one consent, for the same token_url and client_id only, and for no scope beyond it.
func Test_8_5_AFamilySharesOneConsentOfOneSource(t *testing.T) {
	r := newRig(t)
	b, city := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "city")
	r.connect(b, city, "")
	tram := scope("tram", "city")
	tram.Elsewhere = true
	if made := r.connect(b, tram, ""); made.Asked || !made.Shared {
		t.Errorf("%+v", made)
	}
	first, _ := r.token(b, city, time.Minute)
	if second, _ := r.token(b, tram, time.Minute); second != first {
		t.Error("two tokens of one consent")
	}
	for name, change := range map[string]func(*manifest.Source){
		"client":    func(s *manifest.Source) { s.ClientID = "other" },
		"token_url": func(s *manifest.Source) { s.TokenURL += "?a=b" },
		"kind":      func(s *manifest.Source) { *s = manifest.Source{Kind: manifest.KindToken} },
	} {
		src := *b.From
		change(&src)
		thief := scope("thief", "city")
		thief.Elsewhere = true
		before := r.count()
		_, err := r.Connect(t.Context(), bound(binding.User, &src), thief, r.person("what-was-typed"))
		if err == nil || err.Details["reason"] != string(binding.Denied) || !strings.Contains(err.Message, "family city") {
			t.Errorf("another %s: %v", name, err)
		}
		if err := r.refusedMint(bound(binding.User, &src), thief); err.Details["reason"] != string(binding.Denied) {
			t.Errorf("another %s: %v", name, err)
		}
		if r.count() != before {
			t.Errorf("another %s: a request was sent", name)
		}
	}
	wider := *b.From
	wider.Scopes = append(slices.Clone(wider.Scopes), "email")
	if made := r.connect(bound(binding.User, &wider), tram, ""); !made.Asked {
		t.Error("a scope that nobody consented to was taken")
	}
}

// Whoever connects is the owner: another one's consent is not used.
func Test_8_5_ABindingBelongsToWhoConnected(t *testing.T) {
	r := newRig(t)
	b := bound(binding.User, &manifest.Source{Kind: manifest.KindToken})
	r.connect(b, scope("transit", ""), "the-token-of-ada")
	other := scope("transit", "")
	other.Owner = "human:grace"
	if err := r.refusedMint(b, other); err.Details["reason"] != string(binding.Missing) {
		t.Error(err)
	}
}
