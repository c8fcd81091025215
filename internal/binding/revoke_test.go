package binding_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"hcpx/internal/binding"
	"hcpx/internal/manifest"
)

// revocable is a source whose provider takes tokens back.
func (r *rig) revocable(client string) *manifest.Source {
	src := r.source(manifest.KindOAuth2, client)
	src.RevokeURL = r.srv.URL + "/revoke"
	return src
}

// good says whether the provider takes an access token.
func (r *rig) good(token string) bool {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.srv.URL+"/userinfo", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	answer, err := r.srv.Client().Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// §8.5: disconnect gives the tokens back to the server that gave them (RFC 7009): neither the one that makes others nor the one
// that was handed out is taken any more, and nothing is kept.
func Test_8_5_DisconnectGivesTheTokensBack(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.revocable("native")), scope("transit", "")
	r.connect(b, s, "")
	token, _ := r.token(b, s, time.Minute)
	if !r.good(token) {
		t.Fatal("the provider does not take its own token")
	}
	copied := r.box.held[s.Name()]
	ended, err := r.Forget(t.Context(), s.Name())
	if err != nil || ended == nil || !ended.Revoked || !strings.HasPrefix(r.srv.URL, "https://"+ended.Server) || len(r.box.held) > 0 {
		t.Fatalf("%+v, %v, %d kept", ended, err, len(r.box.held))
	}
	if r.good(token) {
		t.Error("the access token is taken still")
	}
	r.box.held[s.Name()] = copied // as from a stolen backup
	r.clock.forward(time.Hour)
	if err := r.refusedMint(b, s); err.Details["reason"] != string(binding.Revoked) {
		t.Error(err)
	}
}

// §8.5: whatever the server answers, and when it answers nothing, what is kept is deleted, and how it went is said without a byte
// of a token.
func Test_8_5_WhateverTheServerAnswersItIsDeleted(t *testing.T) {
	r := newRig(t)
	o := r.options()
	o.Net.Timeout = time.Second
	b, s := bound(binding.User, r.revocable("native")), scope("transit", "")
	r.connect(b, s, "")
	token, _ := r.token(b, s, time.Minute)
	kept := r.box.held[s.Name()]
	for name, c := range map[string]struct {
		fault   func(w http.ResponseWriter, r *http.Request) bool
		revoked bool
		says    string
	}{
		"fails":    {answers(http.StatusInternalServerError, "{}"), false, "failed with the status 500"},
		"busy":     {answers(http.StatusServiceUnavailable, ""), false, "failed with the status 503"},
		"says no":  {answers(http.StatusUnauthorized, `{"error":"invalid_client","error_description":"ECHO"}`), false, "refused: invalid_client"},
		"moved":    {answers(http.StatusTemporaryRedirect, ""), false, "no redirect is followed"},
		"hangs up": {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, false, "could not be reached, or broke off"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, false, "no answer in time"},
		"no words":          {answers(http.StatusOK, ""), true, "answered that the tokens are revoked"},
		"no access tokens":  {refusesAccess, true, "answered that the tokens are revoked"},
		"nothing of a kind": {answers(http.StatusBadRequest, `{"error":"unsupported_token_type"}`), false, "refused: unsupported_token_type"},
	} {
		t.Run(name, func(t *testing.T) {
			r.box.held[s.Name()] = kept
			r.faulty(c.fault)
			ended, err := binding.NewHub(o).Forget(t.Context(), s.Name())
			if err != nil || ended == nil || ended.Revoked != c.revoked || !strings.Contains(ended.Message, c.says) {
				t.Errorf("%+v, %v", ended, err)
			}
			text, _ := json.Marshal(ended)
			if strings.Contains(string(text), token) || strings.Contains(string(text), "ECHO") || len(r.box.held) > 0 {
				t.Errorf("%s, %d kept", text, len(r.box.held))
			}
		})
	}
}

func answers(status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may be gone
		return true
	}
}

func refusesAccess(w http.ResponseWriter, r *http.Request) bool {
	if r.FormValue("token_type_hint") != "access_token" {
		return answers(http.StatusOK, "")(w, r)
	}
	return answers(http.StatusBadRequest, `{"error":"unsupported_token_type"}`)(w, r)
}

// §8.5: without an address nobody is asked, and that is said; what never came of a server is deleted in silence; what is connected
// again under a source that names an address is given back there.
func Test_8_5_WhoIsAskedToRevoke(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
	r.connect(b, s, "")
	asked := 0
	r.faulty(func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path == "/revoke" {
			asked++
		}
		return false
	})
	if ended, err := r.Forget(t.Context(), s.Name()); err != nil || ended == nil || ended.Revoked || ended.Server != "" || !strings.Contains(ended.Message, "names no address") || asked > 0 {
		t.Errorf("%+v, %v, asked %d times", ended, err, asked)
	}
	if ended, err := r.Forget(t.Context(), s.Name()); err != nil || ended != nil {
		t.Errorf("nothing: %+v, %v", ended, err)
	}
	typed, other := bound(binding.User, &manifest.Source{Kind: manifest.KindToken}), scope("ledger", "")
	r.connect(typed, other, "a-typed-token")
	if ended, err := r.Forget(t.Context(), other.Name()); err != nil || ended != nil {
		t.Errorf("a typed one: %+v, %v", ended, err)
	}

	r.connect(b, s, "")
	s.Here = true
	if made := r.connect(bound(binding.User, r.revocable("native")), s, ""); made.Asked {
		t.Error("a person was asked again")
	}
	if ended, err := r.Forget(t.Context(), s.Name()); err != nil || ended == nil || !ended.Revoked || asked == 0 {
		t.Errorf("%+v, %v, asked %d times", ended, err, asked)
	}
}

// §8.4, §8.5: a mint that is on while what is kept is deleted brings nothing back.
func Test_8_5_ARenewalDoesNotOutliveDisconnect(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.revocable("native")), scope("transit", "")
	r.connect(b, s, "")
	r.clock.forward(time.Hour)
	begun, end := make(chan struct{}), make(chan struct{})
	r.faulty(func(_ http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path == "/oauth/token" {
			close(begun)
			<-end
		}
		return false
	})
	minted := make(chan error, 1)
	go func() {
		m, err := r.Mint(context.Background(), b, s, time.Minute)
		m.Release()
		if err != nil {
			minted <- err
			return
		}
		minted <- nil
	}()
	<-begun
	time.AfterFunc(50*time.Millisecond, func() { close(end) })
	if ended, err := r.Forget(t.Context(), s.Name()); err != nil || ended == nil || !ended.Revoked {
		t.Errorf("%+v, %v", ended, err)
	}
	if err := <-minted; err != nil {
		t.Error(err)
	}
	if len(r.box.held) > 0 {
		t.Error("the renewed token is kept")
	}
}
