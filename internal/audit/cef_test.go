package audit

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func Test_15_4_AnEntryAsCEF(t *testing.T) {
	code := 1
	for _, tt := range []struct {
		name string
		e    Entry
		want string
	}{
		{"an outcome", Entry{Seq: 7, Time: "2026-01-02T03:04:05.678Z", Kind: Outcome, ID: "01J", Principal: "agent:claude-code", Pack: "git", Verb: "log", Operation: "read",
			Args: json.RawMessage(`{"limit":2,"note":"a=b|c\\n"}`), Code: "command_failed", Message: "It failed.\nTwice.", Exit: &code, DurationMS: 12.5, Grant: []string{"a", "b"}},
			`CEF:0|hcpx|hcpx|1.2|outcome|A command has ended|5|rt=1767323045678 externalId=01J suser=agent:claude-code act=git/log cat=read outcome=failure reason=command_failed ` +
				`msg=It failed.\nTwice. cn1Label=seq cn1=7 cn2Label=exit cn2=1 cfp1Label=duration_ms cfp1=12.5 cs1Label=args cs1={"limit":2,"note":"a\=b|c\\\\n"} cs6Label=grant cs6=a; b`},
		{"a change", Entry{Seq: 8, Time: "never", Kind: Change, ID: "01K", Principal: "human:ada", Act: "grant", Detail: json.RawMessage(`{"to":"agent:*"}`)},
			`CEF:0|hcpx|hcpx|1.2|change|The store was changed|4|externalId=01K suser=human:ada act=grant outcome=success cn1Label=seq cn1=8 cs1Label=detail cs1={"to":"agent:*"}`},
		{"a denial", Entry{Seq: 9, Kind: Denial, ID: "01L", Principal: "agent:x", Pack: "git", Step: 4, Code: "grant_missing"},
			`CEF:0|hcpx|hcpx|1.2|denial|A request was refused|6|externalId=01L suser=agent:x act=denial git outcome=failure reason=grant_missing cn1Label=seq cn1=9 cn3Label=step cn3=4`},
	} {
		if diff := cmp.Diff(tt.want+"\n", string(AppendCEF(nil, tt.e, "1.2"))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// The format escapes two characters in a header and two others in a value.
func Test_15_4_EscapesOfCEF(t *testing.T) {
	for in, want := range map[string][2]string{
		`a|b`:                 {`a\|b`, `a|b`},
		`a\b`:                 {`a\\b`, `a\\b`},
		`a\|b`:                {`a\\\|b`, `a\\|b`},
		`a=b`:                 {`a=b`, `a\=b`},
		"a\nb\r\n":            {"a b  ", `a\nb\r\n`},
		"a\tb\x00\x1b[1m\x7f": {"a b  [1m ", "a b  [1m "},
		"\u0085\u2028ü\xff":   {"  ü\ufffd", "  ü\ufffd"},
	} {
		if got := [2]string{string(appendCEFHeader(nil, in)), string(appendCEFValue(nil, in))}; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// unescapeCEF reads a value back, as a collector does.
var unescapeCEF = strings.NewReplacer(`\\`, `\`, `\=`, `=`, `\n`, "\n", `\r`, "\r")

func FuzzCEF(f *testing.F) {
	f.Add("human:ada", "a=b|c\\\n", "act=evil")
	f.Add("x\\", "\\=", "|0|")
	f.Fuzz(func(t *testing.T, principal, message, version string) {
		line := string(AppendCEF(nil, Entry{Seq: 1, Kind: Denial, ID: "01J", Principal: principal, Message: message}, version))
		if !utf8.ValidString(line) || strings.Count(line, "\n") != 1 || strings.ContainsAny(line, "\r\x00\x1b") {
			t.Fatalf("not one line: %q", line)
		}
		header := strings.Split(strings.NewReplacer(`\\`, "", `\|`, "").Replace(line), "|")
		if len(header) < 8 || header[6] != "6" {
			t.Fatalf("the header has other fields: %q", line)
		}
		_, rest, found := strings.Cut(line, " msg=")
		if message == "" || !found {
			return
		}
		value := strings.TrimSuffix(rest, " cn1Label=seq cn1=1\n")
		if strings.Contains(strings.NewReplacer(`\\`, "", `\=`, "").Replace(value), "=") {
			t.Fatalf("the value has a key in it: %q", value)
		}
		clean := string(appendEscaped(nil, message, func(r rune) string {
			if r == '\n' || r == '\r' {
				return string(r)
			}
			return ""
		}))
		if got := unescapeCEF.Replace(value); got != clean {
			t.Fatalf("%q is read as %q", message, got)
		}
	})
}
