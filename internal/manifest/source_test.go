package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sourced is a manifest whose binding has the source.
func sourced(t *testing.T, mode, hub, source string) (*Manifest, []string) {
	t.Helper()
	m, issues := Decode([]byte(`{"hcp":{"version":"1.1"},"id":"a","version":"1.0.0","summary":"s","adapter":"sense_only","binding":{"mode":"` + mode + `","hub":"` + hub + `","source":` + source + `}}`))
	if m == nil {
		t.Fatal("no manifest")
	}
	var codes []string
	for _, i := range issues {
		if i.Pointer != "" && i.Code != "manifest.schema" {
			codes = append(codes, string(i.Code)+" "+i.Pointer)
		}
	}
	return m, codes
}

func Test_8_3_EachKindIsDecodedWhole(t *testing.T) {
	const access = "urn:ietf:params:oauth:token-type:access_token"
	for _, c := range []struct {
		mode, hub, text string
		want            Source
	}{
		{"user", "keyring", `{"kind":"token"}`, Source{Kind: KindToken}},
		{"user", "keyring", `{"kind":"basic","username":"ada"}`, Source{Kind: KindBasic, Username: "ada"}},
		{"user", "keyring", `{"kind":"oauth2","auth_url":"https://a.example/d","token_url":"https://a.example/t","client_id":"c","scopes":["a","b:c"]}`,
			Source{Kind: KindOAuth2, Flow: FlowDevice, AuthURL: "https://a.example/d", TokenURL: "https://a.example/t", ClientID: "c", ClientAuth: ClientNone, Scopes: []string{"a", "b:c"}}},
		{"user", "keyring", `{"kind":"oauth2","auth_url":"https://a.example/d","token_url":"https://a.example/t","revoke_url":"https://A.example/r","client_id":"c"}`,
			Source{Kind: KindOAuth2, Flow: FlowDevice, AuthURL: "https://a.example/d", TokenURL: "https://a.example/t", RevokeURL: "https://A.example/r", ClientID: "c", ClientAuth: ClientNone}},
		{"user", "keyring", `{"kind":"oauth2","flow":"code","issuer":"https://a.example","client_auth":"post","auth_url":"https://a.example/d","token_url":"https://a.example/t","client_id":"c"}`,
			Source{Kind: KindOAuth2, Flow: FlowCode, Issuer: "https://a.example", AuthURL: "https://a.example/d", TokenURL: "https://a.example/t", ClientID: "c", ClientAuth: ClientPost}},
		{"local", "local-credential", `{"kind":"command","argv":["gh","auth","token"]}`, Source{Kind: KindCommand, Argv: []string{"gh", "auth", "token"}}},
		{"local", "none", `{"kind":"file","path":"~/.acme/key.json","pointer":"/a~1b/0"}`, Source{Kind: KindFile, Path: "~/.acme/key.json", Pointer: "/a~1b/0"}},
		{"local", "local-credential", `{"kind":"env","name":"ACME_TOKEN"}`, Source{Kind: KindEnv, Name: "ACME_TOKEN"}},
		{"mothership", "keyring", `{"kind":"client_credentials","token_url":"https://a.example/t","client_id":"c","audience":"b"}`,
			Source{Kind: KindClientCredentials, TokenURL: "https://a.example/t", ClientID: "c", ClientAuth: ClientBasic, Audience: "b"}},
		{"mothership", "none", `{"kind":"token_exchange","token_url":"http://localhost:7/t","subject_env":"SUBJECT","resource":"https://b.example"}`,
			Source{Kind: KindTokenExchange, TokenURL: "http://localhost:7/t", ClientAuth: ClientNone, SubjectEnv: "SUBJECT", SubjectType: access, RequestedType: access, Resource: "https://b.example"}},
	} {
		m, issues := sourced(t, c.mode, c.hub, c.text)
		if len(issues) > 0 || m.Binding.From == nil {
			t.Errorf("%s: %v", c.text, issues)
			continue
		}
		if diff := cmp.Diff(c.want, *m.Binding.From); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}

// §8.3: what is not wholly understood is no source, so nothing is minted from half of one.
func Test_8_3_ASourceIsClosed(t *testing.T) {
	const oauth = `{"kind":"oauth2","auth_url":"https://a.example/d","token_url":"https://a.example/t","client_id":"c"`
	for _, c := range []struct{ mode, text, want string }{
		{"user", oauth + `,"revoke_url":"https://b.example/r"}`, "binding.source /binding/source/revoke_url"},
		{"user", oauth + `,"revoke_url":"http://a.example/r"}`, "binding.source /binding/source/revoke_url"},
		{"user", `{"kind":"token","revoke_url":"https://a.example/r"}`, "binding.source /binding/source/revoke_url"},
		{"user", `{"kind":"token","argv":["x"]}`, "binding.source /binding/source/argv"},
		{"user", `{"kind":"basic","username":7}`, "binding.source /binding/source/username"},
		{"user", `{"kind":"basic","username":""}`, "binding.source /binding/source/username"},
		{"user", `{"kind":"oauth2"}`, "binding.source /binding/source"},
		{"user", oauth + `,"flow":"password"}`, "binding.source /binding/source/flow"},
		{"user", oauth + `,"client_auth":"jwt"}`, "binding.source /binding/source/client_auth"},
		{"user", oauth + `,"scopes":"a"}`, "binding.source /binding/source/scopes"},
		{"user", oauth + `,"scopes":["a b"]}`, "binding.source /binding/source/scopes"},
		{"user", oauth + `,"scopes":["a","a"]}`, "binding.source /binding/source/scopes"},
		{"user", oauth + `,"client_secret":"s3cret"}`, "manifest.unknown-field /binding/source/client_secret"},
		{"local", `{"kind":"command"}`, "binding.source /binding/source"},
		{"local", `{"kind":"command","argv":[]}`, "binding.source /binding/source/argv"},
		{"local", `{"kind":"command","argv":"gh auth token"}`, "binding.source /binding/source/argv"},
		{"local", `{"kind":"command","argv":["./bin/x"]}`, "binding.source /binding/source/argv"},
		{"local", `{"kind":"file","path":"key"}`, "binding.source /binding/source/path"},
		{"local", `{"kind":"file","path":"~/../x"}`, "binding.source /binding/source/path"},
		{"local", `{"kind":"file","path":"/a/../x"}`, "binding.source /binding/source/path"},
		{"local", `{"kind":"file","path":"/a","pointer":"a"}`, "binding.source /binding/source/pointer"},
		{"local", `{"kind":"env","name":"A=B"}`, "binding.source /binding/source/name"},
		{"mothership", `{"kind":"client_credentials","token_url":"https://a.example/t","client_id":"c","client_auth":"none"}`, "binding.source /binding/source/client_auth"},
		{"mothership", `{"kind":"token_exchange","token_url":"https://a.example/t","subject_file":"/a","subject_env":"A"}`, "binding.source /binding/source/subject_env"},
		{"mothership", `{"kind":"token_exchange","token_url":"https://u:p@a.example/t"}`, "binding.source /binding/source/token_url"},
		{"mothership", `{"kind":"token_exchange","token_url":"http://10.0.0.1/t"}`, "binding.source /binding/source/token_url"},
	} {
		hub := "keyring"
		if c.mode == "local" {
			hub = "local-credential"
		}
		m, issues := sourced(t, c.mode, hub, c.text)
		if len(issues) == 0 || issues[0] != c.want {
			t.Errorf("%s: %v, want %s", c.text, issues, c.want)
		}
		if m.Binding.From != nil && c.want[:7] == "binding" {
			t.Errorf("%s: is a source", c.text)
		}
	}
}
