package binding

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
)

// What this room takes for an answer is what the standard library reads in the same bytes; it may only be stricter.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"HTTP/1.0 500 No\r\n\r\nbody", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\n\r\n", "HTTP/1.1 200\nDate: Tue, 01 Dec 2026 01:00:00 GMT\n\n{}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := readAnswer(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		if len(a.body) > maxBody || a.status < 200 || a.status > 999 {
			t.Fatalf("%+v", a)
		}
		in := bufio.NewReader(bytes.NewReader(raw))
		for {
			r, err := http.ReadResponse(in, &http.Request{Method: http.MethodPost})
			if err != nil {
				return // the library is stricter where nothing hangs on it, as in names of fields
			}
			if r.StatusCode < 200 {
				continue
			}
			body, err := io.ReadAll(r.Body)
			if r.StatusCode != a.status || err == nil && !bytes.Equal(body, a.body) {
				t.Fatalf("%d %q, the library %d %q", a.status, a.body, r.StatusCode, body)
			}
			return
		}
	})
}

// A token answer is taken whole or not at all.
func FuzzTokenOf(f *testing.F) {
	for _, s := range []string{
		`{"access_token":"a-good-token","token_type":"Bearer","expires_in":3600,"refresh_token":"r"}`, `{"access_token":"a-good-token","token_type":"n_a","expires_in":"1e3"}`,
		`{"access_token":"a\u0000good-token","token_type":"Bearer","expires_in":-1}`, `{"error":"slow_down"}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		root, faults := jsondoc.Parse(raw, jsondoc.Limits{Bytes: maxBody, Depth: 16})
		if len(faults) > 0 || root.Kind != jsondoc.Object {
			return
		}
		now := time.Unix(1<<30, 0)
		got, err := tokenOf(root, &manifest.Source{Kind: manifest.KindOAuth2, TokenURL: "https://id.example.org/t"}, now)
		if err != nil {
			return
		}
		if len(got.Value) < shortest || !got.Expires.IsZero() && (!got.Expires.After(now) || got.Expires.After(now.Add(longestToken))) {
			t.Fatalf("%+v", got)
		}
	})
}
