package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// policyText is a policy without a fault; the tests break one thing in it.
const policyText = `{
  "surface_id": "ledger",
  "verbs": {
    "balance":  { "operation": "read",  "privacy": { "land": "personal" } },
    "transfer": { "operation": "write", "privacy": { "land": "personal" }, "confirm": { "message": "Move {amount} {currency} to {to}?" }, "redact": ["/token"], "preview": "balance", "protected": ["Makefile"] }
  },
  "triggers": {
    "posted":   { "operation": "read",  "privacy": { "land": "personal" } }
  }
}
`

func found(src string) string {
	_, issues := Decode([]byte(src))
	var out []string
	for _, i := range issues {
		out = append(out, fmt.Sprintf("%d:%d %s %s", i.Line, i.Column, i.Code, i.Pointer))
	}
	return strings.Join(out, "; ")
}

func TestDecodeReadsAPolicy(t *testing.T) {
	p, issues := Decode([]byte(policyText))
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	if p.SurfaceID != "ledger" || len(p.Verbs) != 2 || p.Verb("none") != nil || p.Trigger("balance") != nil {
		t.Errorf("%+v", p)
	}
	e := p.Verb("transfer")
	if e.Operation != protocol.Write || e.Land != protocol.Personal || !e.Confirm || e.Preview != "balance" || !slices.Equal(e.Redact, []string{"/token"}) || !slices.Equal(e.Protected, []string{"Makefile"}) {
		t.Errorf("%+v", e)
	}
	if got := p.Trigger("posted"); got == nil || got.Operation != protocol.Read || policyText[got.KeyOffset:got.KeyOffset+8] != `"posted"` {
		t.Errorf("%+v", got)
	}
}

func TestDecodePlacesEveryFault(t *testing.T) {
	for _, tt := range []struct{ name, old, new, want string }{
		{"§2.1 duplicate entry", `"balance":  {`, `"transfer": {`, `5:5 json.duplicate-key /verbs/transfer`},
		{"§2.2 surface_id missing", `  "surface_id": "ledger",` + "\n", ``, `1:1 policy.schema `},
		{"§4.1 operation missing", `"transfer": { "operation": "write",`, `"transfer": {`, `5:17 policy.schema /verbs/transfer`},
		{"§4.2 operation", `"transfer": { "operation": "write"`, `"transfer": { "operation": "delete"`, `5:32 policy.schema /verbs/transfer/operation`},
		{"§4.3 land", `"write", "privacy": { "land": "personal" }`, `"write", "privacy": { "land": "cloud" }`, `5:62 policy.schema /verbs/transfer/privacy/land`},
		{"§4.1 land missing", `"write", "privacy": { "land": "personal" }`, `"write", "privacy": { }`, `5:52 policy.schema /verbs/transfer/privacy`},
		{"§4.1 privacy missing", `"write", "privacy": { "land": "personal" }`, `"write"`, `5:17 policy.schema /verbs/transfer`},
		{"§4.1 entry no object", `"balance":  {`, `"x": 1, "balance":  {`, `4:10 policy.schema /verbs/x`},
		{"§4.5 confirm on a read", `"balance":  {`, `"balance":  { "confirm": true,`, `4:19 policy.confirm-on-read /verbs/balance/confirm`},
		{"§4.5 false on a read too", `"balance":  {`, `"balance":  { "confirm": false,`, `4:19 policy.confirm-on-read /verbs/balance/confirm`},
		{"§4.5 confirm on a trigger", `"posted":   {`, `"posted":   { "confirm": false,`, `8:19 policy.confirm-on-read /triggers/posted/confirm`},
		{"§4.5 a trigger is read", `"posted":   { "operation": "read"`, `"posted":   { "operation": "write"`, `8:32 policy.schema /triggers/posted/operation`},
		{"§4.5 confirm of another form", `{ "message": "Move {amount} {currency} to {to}?" }`, `"yes"`, `5:87 policy.schema /verbs/transfer/confirm`},
		{"§4.5 no message", `{ "message": "Move {amount} {currency} to {to}?" }`, `{ }`, `5:87 policy.schema /verbs/transfer/confirm`},
		{"§4.5 a lone brace", `{amount} {currency}`, `{amount`, `5:100 policy.schema /verbs/transfer/confirm/message`},
		{"§4.6 no pointer", `"/token"`, `"token"`, `5:150 policy.schema /verbs/transfer/redact/0`},
		{"§4.7 preview", `"preview": "balance"`, `"preview": 1`, `5:172 policy.schema /verbs/transfer/preview`},
		{"§13.2 unknown member", `"surface_id"`, `"owner": 1, "surface_id"`, `2:3 manifest.unknown-field /owner`},
		{"§13.2 unknown member of an entry", `"balance":  {`, `"balance":  { "ttl": 1,`, `4:19 manifest.unknown-field /verbs/balance/ttl`},
		{"§4 not an object", policyText, `[]`, `1:1 policy.schema `},
		{"§2.1 no JSON", policyText, `{`, `1:2 json.syntax `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Count(policyText, tt.old) != 1 {
				t.Fatalf("%q stands %d times in the policy", tt.old, strings.Count(policyText, tt.old))
			}
			if got := found(strings.Replace(policyText, tt.old, tt.new, 1)); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// What can't be read gates all the same: a runtime that has no lint before it must not fall open.
func Test_4_5_BrokenConfirmStillGates(t *testing.T) {
	for confirm, want := range map[string]bool{`true`: true, `false`: false, `"yes"`: true, `null`: true, `0`: true, `{}`: true, `{"message":"{"}`: true} {
		p, _ := Decode([]byte(`{"surface_id":"a","verbs":{"v":{"operation":"write","privacy":{"land":"local"},"confirm":` + confirm + `}}}`))
		if got := p.Verb("v").Confirm; got != want {
			t.Errorf("confirm %s: %v", confirm, got)
		}
	}
}

func Test_4_2_BrokenOperationIsNone(t *testing.T) {
	p, _ := Decode([]byte(`{"surface_id":"a","verbs":{"v":{"operation":"READ","privacy":{"land":"home"}}},"triggers":{"t":{"operation":"write"}}}`))
	if e := p.Verb("v"); e.Operation != "" || e.Land != "" {
		t.Errorf("%+v", e)
	}
	if e := p.Trigger("t"); e.Operation != "" {
		t.Errorf("%+v", e)
	}
}

func Test_2_6_MustUnderstand(t *testing.T) {
	p, issues := Decode([]byte(`{"surface_id":"a","must_understand":["quota","redact"],"verbs":{"v":{"operation":"read","privacy":{"land":"local"},"quota":1}}}`))
	if len(issues) > 0 || len(p.Unmet) > 0 || !slices.Equal(p.Verb("v").Unmet, []string{"quota"}) {
		t.Errorf("%v %v", p.Unmet, issues)
	}
	p, _ = Decode([]byte(`{"surface_id":"a","must_understand":["quota"],"verbs":{"v":{"must_understand":["preview","foresight"],"operation":"read","privacy":{"land":"local"}}}}`))
	if !slices.Equal(p.Unmet, []string{"quota"}) || !slices.Equal(p.Verb("v").Unmet, []string{"foresight"}) {
		t.Errorf("%v %v", p.Unmet, p.Verb("v").Unmet)
	}
}

func parse(t *testing.T, text string) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return n
}

func Test_4_5_SentenceIsFilledWithTheArguments(t *testing.T) {
	args := parse(t, `{"amount":12345678901234567890.50,"currency":"EUR","to":"bob\u001b[2J\u202e","tags":["a\u0007",1],"yes":true,"big":1e2}`)
	for message, want := range map[string]string{
		"Move {amount} {currency}?":  "Move 12345678901234567890.50 EUR?",
		"To {to}?":                   `To bob\x1b[2J\u202e?`,
		"Tag {tags}, {yes}, {big}.":  `Tag ["a\u0007",1], true, 100.`,
		"Note {note}.":               "Note (not given).",
		"{{amount}} is {{{amount}}}": "{amount} is {12345678901234567890.50}",
		"":                           "Run the write command transfer?",
	} {
		e := &Entry{Key: "transfer", Message: message}
		if got := e.Sentence(args); got != want {
			t.Errorf("%q became %q, want %q", message, got, want)
		}
	}
	e := &Entry{Message: "{a} {b} {a} {{c}}"}
	if got := e.Placeholders(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("placeholders: %v", got)
	}
}

func Test_4_6_RedactReplacesBeforeTheResultLeaves(t *testing.T) {
	const text = `{"token":"s3cret","list":[{"token":1},{"token":2}],"keep":{"a":1.00}}`
	for pointers, want := range map[string]string{
		"/token":                 `{"token":"[redacted]","list":[{"token":1},{"token":2}],"keep":{"a":1.00}}`,
		"/list/1/token":          `{"token":"s3cret","list":[{"token":1},{"token":"[redacted]"}],"keep":{"a":1.00}}`,
		"/list,/keep/a":          `{"token":"s3cret","list":"[redacted]","keep":{"a":"[redacted]"}}`,
		"/none,/list/7,/token/x": text,
		"":                       `"[redacted]"`,
		"token":                  `"[redacted]"`,
	} {
		v := parse(t, text)
		e := &Entry{Redact: strings.Split(pointers, ",")}
		if got := string(e.RedactResult(v).Append(nil)); got != want {
			t.Errorf("%q gave %s", pointers, got)
		}
		if string(v.Append(nil)) != text {
			t.Errorf("%q changed the value itself", pointers)
		}
	}
	if got := (&Entry{Redact: []string{"/a"}}).RedactResult(nil); got != nil {
		t.Errorf("nothing became %v", got)
	}
}

func Test_13_3_Compare(t *testing.T) {
	old, _ := Decode([]byte(policyText))
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"nothing", `"ledger"`, `"ledger"`, nil},
		{"stricter", `"balance":  { "operation": "read",`, `"more": { "operation": "write", "privacy": { "land": "local" } }, "balance":  { "operation": "read", "redact": ["/x"],`, nil},
		{"write to read", `"operation": "write", "privacy": { "land": "personal" }, "confirm": { "message": "Move {amount} {currency} to {to}?" },`, `"operation": "read", "privacy": { "land": "personal" },`,
			[]string{"transfer: a write is now declared a read, which fewer grants are needed for", "transfer: it no longer asks for confirmation"}},
		{"read to write", `"balance":  { "operation": "read"`, `"balance":  { "operation": "write"`, []string{"balance: a read is now a write"}},
		{"land", `"write", "privacy": { "land": "personal" }`, `"write", "privacy": { "land": "brain" }`, []string{"transfer: its land changes from personal to brain"}},
		{"redact", `"redact": ["/token"], `, ``, []string{`transfer: "/token" is no longer redacted from its result`}},
		{"preview", `"preview": "balance", `, ``, []string{"transfer: its preview balance is gone"}},
		{"protected", `["Makefile"]`, `["Makefile", ".envrc"]`, []string{`transfer: it may now change the protected names ".envrc"`}},
		{"a trigger's land", `"posted":   { "operation": "read",  "privacy": { "land": "personal" }`, `"posted":   { "operation": "read",  "privacy": { "land": "brain" }`, []string{"posted: its land changes from personal to brain"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now, issues := Decode([]byte(strings.Replace(policyText, tt.old, tt.new, 1)))
			if len(issues) > 0 {
				t.Fatal(issues)
			}
			var got []string
			for _, c := range Compare(old, now) {
				if c.Widens {
					got = append(got, c.What)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if Compare(nil, old) != nil || Compare(old, nil) != nil {
		t.Error("no policy differs from nothing")
	}
	stricter, _ := Decode([]byte(strings.Replace(policyText, `"balance":  { "operation": "read",`, `"balance":  { "operation": "read", "redact": ["/x"],`, 1)))
	if d := cmp.Diff([]Change{{What: `balance: "/x" is now redacted from its result`}}, Compare(old, stricter)); d != "" {
		t.Error("what is stricter is told too:", d)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(policyText))
	f.Add([]byte(`{"verbs":{"a":{"confirm":{"message":"{{}{"},"redact":["/~"],"privacy":[]}},"must_understand":["x",1]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		p, issues := Decode(src)
		if p == nil && len(issues) == 0 {
			t.Fatal("no policy, and no word about it")
		}
		for _, i := range issues {
			if i.Line < 1 || i.Column < 1 || i.Section == "" || i.Message == "" {
				t.Fatalf("%+v", i)
			}
		}
		if p == nil {
			return
		}
		for _, e := range p.Verbs {
			e.Sentence(p.Root)
			e.RedactResult(p.Root)
		}
		if got := Compare(p, p); got != nil {
			t.Fatalf("a policy differs from itself: %v", got)
		}
	})
}
