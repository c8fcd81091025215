package imports

import (
	"strings"
	"testing"
)

const schemes = `{"securitySchemes":{"bearer":{"type":"http","scheme":"bearer"},"basic":{"type":"http","scheme":"Basic"},"key":{"type":"apiKey","in":"query","name":"k"},
	"app":{"type":"apiKey","in":"header","name":"X-App"},"mutual":{"type":"mutualTLS"},"implicit":{"type":"oauth2","flows":{"implicit":{"authorizationUrl":"https://a.example/auth","scopes":{"r":"","w":""}}}},
	"code":{"type":"oauth2","flows":{"authorizationCode":{"authorizationUrl":"https://a.example/auth","tokenUrl":"https://a.example/token","scopes":{"r":"long words"}}}}}}`

// §8, §3.6: the binding is what most operations take; each command has the one requirement that it meets, and an
// operation that it can't meet is left out.
func Test_8_Bindings(t *testing.T) {
	for name, c := range map[string]struct {
		security string // of /a, /b and /c
		o        Options
		binding  string
		copied   string
		left     int
	}{
		"none":                {`[] | [] | [{}]`, Options{}, "", "[] [] []", 0},
		"bearer":              {`[{"bearer":[]}] | [] | [{"bearer":[]},{}]`, Options{}, "token", `[{"bearer":[]}] [] [{"bearer":[]}]`, 0},
		"basic":               {`[{"basic":[]}] | [{"basic":[]}] | []`, Options{}, "basic", `[{"basic":[]}] [{"basic":[]}] []`, 0},
		"a token before both": {`[{"basic":[]},{"key":[]}] | [{"basic":[]},{"key":[]}] | []`, Options{}, "token", `[{"key":[]}] [{"key":[]}] []`, 0},
		"the commonest":       {`[{"key":[]}] | [{"bearer":[]},{"key":[]}] | [{"key":[]}]`, Options{}, "token", `[{"key":[]}] [{"key":[]}] [{"key":[]}]`, 0},
		"another kind":        {`[{"bearer":[]}] | [{"bearer":[]}] | [{"basic":[]}]`, Options{}, "token", `[{"bearer":[]}] [{"bearer":[]}]`, 1},
		"several at once":     {`[{"key":[],"app":[]}] | [{"key":[]}] | []`, Options{}, "token", `[{"key":[],"app":[]}] [{"key":[]}] []`, 0},
		"one sign-in twice":   {`[{"implicit":["r"],"code":["r"]}] | [] | []`, Options{}, "token", `[{"code":["r"]}] [] []`, 0},
		"mixed":               {`[{"basic":[],"bearer":[]}] | [] | []`, Options{}, "", `[] []`, 1},
		"unknown":             {`[{"mutual":[]}] | [{"nowhere":[]}] | []`, Options{}, "", `[]`, 2},
		"a client":            {`[{"code":["w","r"]}] | [{"code":["r","bad scope"]}] | []`, Options{ClientID: "me"}, "oauth2", `[{"code":["w","r"]}] [{"code":["r","bad scope"]}] []`, 0},
	} {
		parts := strings.Split(c.security, " | ")
		m := made(t, doc(`{"/a":{"get":{"security":`+parts[0]+`}},"/b":{"get":{"security":`+parts[1]+`}},"/c":{"get":{"security":`+parts[2]+`}}}`, schemes), c.o)
		surface := m.file(t, "surface.json")
		kind := ""
		if k := surface.Get("binding").Get("source").Get("kind"); k != nil {
			kind = k.Text
		}
		var copied []string
		for _, p := range m.file(t, "openapi.json").Get("paths").Members {
			copied = append(copied, string(p.Value.Get("get").Get("security").Append(nil)))
		}
		if got := strings.Join(copied, " "); kind != c.binding || got != c.copied || len(m.Report.Left) != c.left {
			t.Errorf("%s: binding %q, security %s, left %v", name, kind, got, m.Report.Left)
		}
		if c.o.ClientID != "" {
			if got := string(surface.Get("binding").Get("source").Append(nil)); !strings.Contains(got, `"client_id":"me","scopes":["r","w"]`) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}

// §3.6: the place where the credential goes is no argument, and neither are headers that others write.
func Test_3_6_NoArgumentHoldsACredential(t *testing.T) {
	m := made(t, doc(`{"/a":{"get":{"security":[{"bearer":[]},{"key":[]}],"parameters":[{"in":"query","name":"k","required":true,"schema":{"type":"string"}},
		{"in":"header","name":"AUTHORIZATION","required":true},{"in":"header","name":"Content-Type"},{"in":"header","name":"accept"},
		{"in":"header","name":"X-App","schema":{"type":"string"}},{"in":"header","name":"Host"},{"in":"body","name":"b"}]}}}`, schemes), Options{})
	args := m.file(t, "surface.json").Get("verbs").Get("a.get").Get("args").Get("properties")
	if got := string(args.Append(nil)); got != `{"X-App":{"type":"string"}}` {
		t.Errorf("the arguments are %s", got)
	}
}
