package protocol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// §6.2: the envelope written by hand is the one that encoding/json writes.
func Test_6_2_TheEnvelopeByHand(t *testing.T) {
	refusal := Fail(InvalidArgs, "a < b & \"c\".").WithHint("hcpx help").With("violations", []Violation{{"/a", "<b>"}})
	refusal.Step = 5
	for _, r := range []Result{
		{}, {OK: true, PackID: "git", VerbKey: "log", Result: json.RawMessage(`{"n":9007199254740993,"s":"<&>"}`)},
		{OK: true, PackID: "a", Result: json.RawMessage(`"\u0000"`), Notes: []string{"for a person"}},
		Denied("a\x00\x1f\"\\ü", "\xff漢", refusal), Denied("", "", Fail(InternalError, "")),
	} {
		got := r.AppendJSON(nil)
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			t.Fatal(err)
		}
		var is, want any
		if err := json.Unmarshal(got, &is); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if err := json.Unmarshal(b.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(is, want) || len(r.PackID) < 3 && string(got)+"\n" != b.String() {
			t.Errorf("got  %s\nwant %s", got, &b)
		}
	}
	// A detail that cannot be written does not take the answer with it.
	if got := string(Denied("a", "b", Fail(NotFound, "No.").With("f", func() {})).AppendJSON(nil)); got != `{"ok":false,"pack_id":"a","verb_key":"b","error":{"code":"not_found","message":"No."}}` {
		t.Error(got)
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\"\\\n\u2028\x7f\xff")
	f.Fuzz(func(t *testing.T, s string) {
		quoted := appendString(nil, s)
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil || back != string([]rune(s)) {
			t.Errorf("%q became %s: %v", s, quoted, err)
		}
	})
}
