package pipeline

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

const hush = `s3cr/t+"v\al"ue é~`

// wrapped is base64 in lines of n characters.
func wrapped(s string, n int) string {
	var b strings.Builder
	for i := 0; i < len(s); i += n {
		b.WriteString(s[i:min(i+n, len(s))] + "\n")
	}
	return b.String()
}

// percents escapes every byte, with small or capital digits.
func percents(s, verb string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, verb, c)
	}
	return b.String()
}

func escapedJSON(t *testing.T, s string, ascii bool) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	out := string(text[1 : len(text)-1])
	if ascii {
		out = strings.ReplaceAll(strings.ReplaceAll(out, "é", `\u00E9`), "/", `\/`)
	}
	return out
}

// §8.4: the value and its base64, base64url, URL-encoded and JSON-escaped forms are gone, whichever encoder wrote them.
func Test_8_4_EveryFormIsMasked(t *testing.T) {
	m := newMask([]string{hush})
	std, long := base64.StdEncoding, strings.Repeat("x", 100)
	for name, form := range map[string]string{
		"raw": hush, "JSON": escapedJSON(t, hush, false), "JSON in ASCII": escapedJSON(t, hush, true),
		"query": url.QueryEscape(hush), "path": url.PathEscape(hush), "all percents": percents(hush, "%%%02X"), "small percents": percents(hush, "%%%02x"),
		"base64": std.EncodeToString([]byte(hush)), "raw base64": base64.RawStdEncoding.EncodeToString([]byte(hush)),
		"base64url": base64.URLEncoding.EncodeToString([]byte(hush)), "raw base64url": base64.RawURLEncoding.EncodeToString([]byte(hush)),
		"base64 in a URL": url.QueryEscape(std.EncodeToString([]byte(hush))), "base64 in lines": wrapped(std.EncodeToString([]byte(hush)), 5),
		"base64 in JSON": strings.TrimSuffix(strings.ReplaceAll(wrapped(std.EncodeToString([]byte(hush)), 7), "\n", `\n`), `\n`),
	} {
		for _, around := range []string{"%s", "before %s after", `{"a":"%s"}`, "%s%s"} {
			text := strings.ReplaceAll(around, "%s", form)
			got := string(m.bytes([]byte(text)))
			if want := strings.ReplaceAll(around, "%s", protocol.Redacted); strings.TrimSpace(got) != want && !strings.HasPrefix(name, "base64 in lines") || strings.Contains(got, form) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	for before := range 7 {
		for after := range 4 {
			text := long[:before] + hush + long[:after]
			for _, enc := range []*base64.Encoding{std, base64.RawURLEncoding} {
				got := string(m.bytes([]byte(enc.EncodeToString([]byte(text)))))
				if at := strings.Index(got, protocol.Redacted); at < 0 || at > 4*before/3 || len(got) > len(protocol.Redacted)+4*(before+after)/3+4 {
					t.Errorf("%d before and %d after: %q", before, after, got)
				}
			}
		}
	}
	for _, innocent := range []string{"", "s3cr", "nothing of it", std.EncodeToString([]byte("nothing")), strings.Repeat("s3cr/t+", 3)} {
		if got := string(m.bytes([]byte(innocent))); got != innocent {
			t.Errorf("%q became %q", innocent, got)
		}
	}
}

// What a command escaped in its JSON stands open once it is parsed, in texts and in names.
func Test_8_4_ParsedTextsAreMasked(t *testing.T) {
	src := `{"\u0073ecret-value": ["a \u0073\u0065cret-value", 1, {"b": "secret-v\u0061lue"}]}`
	n, faults := jsondoc.Parse([]byte(src), jsondoc.Limits{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got := string(newMask([]string{"secret-value"}).node(n).Append(nil))
	if want := `{"[redacted]":["a [redacted]",1,{"b":"[redacted]"}]}`; got != want {
		t.Errorf("%s", got)
	}
}

// §8.4: masked before anything is cut, and what a cut left of a secret at the edge goes too, in every form and at every place.
func Test_8_4_ACutLeavesNoPieceOfASecret(t *testing.T) {
	m := newMask([]string{hush})
	for _, form := range []string{hush, url.QueryEscape(hush), escapedJSON(t, hush, true), base64.StdEncoding.EncodeToString([]byte(hush)), base64.StdEncoding.EncodeToString([]byte("x" + hush))} {
		for at := 8; at < len(form); at++ {
			box := masked(&recorder{outcome: sandbox.Outcome{
				Overflow: true, Stdout: []byte("begin " + form[:at]),
				Stderr: []byte(form[len(form)-at:] + " end"), StderrSize: 1 << 20,
			}}, m)
			out, err := box.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if left := strings.ReplaceAll(strings.TrimPrefix(string(out.Stdout), "begin "), protocol.Redacted, ""); len(left) > 3 {
				t.Errorf("%q cut at %d: stdout keeps %q", form, at, left)
			}
			if left := strings.ReplaceAll(strings.TrimSuffix(string(out.Stderr), " end"), protocol.Redacted, ""); len(left) > 7 {
				t.Errorf("%q cut at %d: stderr keeps %q", form, at, left)
			}
		}
	}
}

// §8.4: no error, detail or reason keeps a value; what has none is not touched.
func Test_8_4_ErrorsAreMaskedWhole(t *testing.T) {
	m := newMask([]string{"secret-value"})
	type row struct{ Path string }
	e := protocol.Fail(protocol.CommandFailed, "It said secret-value.").WithHint("cat secret-value").
		With("text", "secret-value").With("rows", []row{{"/a/secret-value"}}).With("number", 7).With("odd", make(chan int))
	m.refusal(e)
	text := fmt.Sprint(e, e.Hint)
	for key, v := range e.Details {
		if raw, ok := v.(json.RawMessage); ok {
			v = string(raw)
		}
		text += fmt.Sprint(key, v)
	}
	if strings.Contains(text, "secret-value") || e.Details["number"] != 7 || strings.Count(text, protocol.Redacted) < 5 {
		t.Error(text)
	}
	var none *mask
	none.refusal(e)
	if none.text("a") != "a" || !bytes.Equal(none.bytes([]byte("b")), []byte("b")) {
		t.Error("no mask hides something")
	}
}

func FuzzMask(f *testing.F) {
	f.Add([]byte("before "), []byte(" after"), hush)
	f.Add([]byte{0xff, '%'}, []byte(`\u`), "12345678")
	f.Fuzz(func(t *testing.T, before, after []byte, secret string) {
		if len(secret) < 8 || len(secret) > 200 {
			return
		}
		m := newMask([]string{secret})
		text := append(append(bytes.Clone(before), secret...), after...)
		if got := m.bytes(text); bytes.Contains(got, []byte(secret)) && !strings.Contains(protocol.Redacted, secret) {
			t.Errorf("%q stays in %q", secret, got)
		}
		m.tornStart(text)
		m.tornEnd(text)
	})
}

// A megabyte of text in which nothing has to go: what every run with a credential pays.
func BenchmarkMask(b *testing.B) {
	m := newMask([]string{strings.Repeat("k3y-", 10), "another-secret/of+some=length"})
	text := []byte(strings.Repeat(`{"name":"a line of an ordinary answer","n":12345,"path":"/a/b/c%20d"}`+"\n", 1<<20/70))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.bytes(text)
	}
}
