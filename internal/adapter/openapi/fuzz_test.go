package openapi

import (
	"net/http"
	"testing"
	"testing/fstest"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Whatever a document is, lint answers with sentences, and a command that it lets through can render.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(op("post", "/x/{a}", `,"parameters":[{"name":"a","in":"path","required":true,"schema":{"$ref":"#/components/schemas/Pet"}}]`+content("multipart/form-data", `{"allOf":[{"$ref":"#/components/schemas/Pet"}]}`, `,"encoding":{"name":{"contentType":"x/y"}}`))), false)
	f.Add([]byte(`{"openapi":"3.0.0","paths":{"/x":{"get":{"operationId":"op","security":[{"a":[]}],"servers":[{"url":"{a}"}]}}}}`), false)
	f.Add([]byte(`{"openapi":"3.0.0","paths":{"/x":{"get":{"operationId":"op","responses":{"":{"content":{"":{}}}},"requestBody":{"content":{"":{}}}}}}}`), false)
	f.Add([]byte("openapi: 3.1.0\npaths: &a\n  /x: {get: {operationId: op, parameters: [*a]}}\n"), true)
	f.Fuzz(func(t *testing.T, src []byte, yaml bool) {
		name := "openapi.json"
		if yaml {
			name = "openapi.yaml"
		}
		m, _ := manifest.Decode([]byte(`{"hcp":{"version":"1.1"},"id":"a","version":"1.0.0","summary":"A.","adapter":"openapi","openapi":{"document":"` + name + `","server":"https://a.example"},"verbs":{"go":{"summary":"Go","operation_id":"op"}}}`))
		a := New(Options{})
		summary, issues := a.Summarize(m, fstest.MapFS{name: {Data: src}})
		for _, i := range issues {
			if i.Message == "" || i.Line < 1 || i.Column < 1 || i.File == "" {
				t.Fatalf("%+v", i)
			}
		}
		if !a.Adopt(m, summary) {
			t.Fatal("its own summary is not taken")
		}
		issues = append(issues, m.Check()...)
		c, found := a.Compile(m, m.Commands[0])
		if protocol.HasErrors(append(issues, found...)) || c == nil {
			return
		}
		args := jsondoc.Obj()
		for i, p := range c.(*command).op.params {
			args = args.With(p.arg, []*jsondoc.Node{jsondoc.Str("../x"), jsondoc.Arr(jsondoc.Str("a"), jsondoc.Obj()), jsondoc.Obj(jsondoc.Member{Key: "k", Value: jsondoc.Num("1")})}[i%3])
		}
		for _, body := range []*jsondoc.Node{nil, jsondoc.Str("x"), jsondoc.Obj(jsondoc.Member{Key: "file", Value: jsondoc.Str("x")})} {
			with := args
			if body != nil {
				with = args.With("body", body)
			}
			call, bad := c.Render(with)
			if (call == nil) == (len(bad) == 0) {
				t.Fatalf("%v %v", call, bad)
			}
			if call != nil {
				if r, err := http.NewRequest(call.Request.Method, call.Request.URL, nil); err != nil || r.URL.String() != call.Request.URL {
					t.Fatalf("%s: %v", call.Request.URL, err)
				}
			}
		}
	})
}

// Whatever a server answers there is one result or one refusal, without the credential.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "application/json", "", []byte(`{"a":1}`), false)
	f.Add(404, "text/plain; charset=latin1", "br", []byte("secret-token\xff"), true)
	f.Fuzz(func(t *testing.T, status int, media, encoding string, body []byte, head bool) {
		c := &command{op: &operation{method: "GET", json: head}, server: server{scheme: "https", host: "a.example"}}
		run := runOf(&adapter.Call{})
		run.Keep = func(name string, data []byte) (string, error) { return name, nil }
		s := &sending{command: c, run: run, attempts: 1}
		h := http.Header{"Content-Type": {media}, "Retry-After": {media}}
		if encoding != "" {
			h["Content-Encoding"] = []string{encoding}
		}
		out := &adapter.Output{}
		err := s.answer(&reply{status: status, header: h, body: body, head: head}, out)
		if (err == nil) == (out.Value == nil) {
			t.Fatalf("%+v %+v", out, err)
		}
	})
}
