package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

func TestHCP_14_3_9_WhatAResultMustLookLike(t *testing.T) {
	denied := func(step int, message string) protocol.Result {
		return protocol.Denied("p", "v", &protocol.Error{Code: protocol.GrantMissing, Message: message, Step: step})
	}
	withBoth := denied(4, "No.")
	withBoth.Result = json.RawMessage("1")
	okAndError := denied(4, "No.")
	okAndError.OK = true
	for name, c := range map[string]struct {
		r    protocol.Result
		want string
	}{
		"success":           {protocol.Result{OK: true, PackID: "p", VerbKey: "v", Result: json.RawMessage("1")}, ""},
		"success of null":   {protocol.Result{OK: true, PackID: "p", VerbKey: "v"}, ""},
		"denial":            {denied(4, "No grant covers it."), ""},
		"neither":           {protocol.Result{}, "disagree"},
		"ok with an error":  {okAndError, "disagree"},
		"denial and result": {withBoth, "carries a result"},
		"no step":           {denied(0, "No."), "no step"},
		"step 11":           {denied(11, "No."), "no step"},
		"no sentence":       {denied(4, " "), "no sentence"},
		"a stack trace":     {denied(4, "goroutine 1\nmain.go:1"), "no sentence"},
	} {
		t.Run(name, func(t *testing.T) {
			err := wellFormed(c.r)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

func TestAnAnswerIsComparedByWhatIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		got, want string
		fits      bool
	}{
		"more details than wanted":         {`{"error":{"code":"x","details":{"a":1,"b":2}}}`, `{"error":{"code":"x","details":{"b":2}}}`, true},
		"another detail":                   {`{"error":{"code":"x","details":{"b":3}}}`, `{"error":{"code":"x","details":{"b":2}}}`, false},
		"a missing detail":                 {`{"error":{"code":"x"}}`, `{"error":{"code":"x","details":{"b":2}}}`, false},
		"another code":                     {`{"error":{"code":"y"}}`, `{"error":{"step":1}}`, false},
		"a result is whole":                {`{"ok":true,"result":{"a":1,"b":2}}`, `{"ok":true,"result":{"a":1}}`, false},
		"ok can't be left out":             {`{"ok":true,"pack_id":"p"}`, `{"pack_id":"p"}`, false},
		"numbers by value":                 {`{"result":{"a":12.50}}`, `{"result":{"a":12.5}}`, true},
		"numbers exactly":                  {`{"result":9007199254740993}`, `{"result":9007199254740992}`, false},
		"a longer list":                    {`{"packs":[{"a":1},{"a":2}]}`, `{"packs":[{"a":1}]}`, false},
		"items by what is wanted":          {`{"packs":[{"a":1,"b":2}]}`, `{"packs":[{"a":1}]}`, true},
		"an empty object wants none":       {`{"commands":{"a":1}}`, `{"commands":{}}`, false},
		"an empty object and an empty one": {`{"commands":{}}`, `{"commands":{}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &play{vector: Vector{files: []file{{"want", []byte(c.want)}}}}
			got, err := parseJSON([]byte(c.got))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.compare("want", got, true); (err == nil) != c.fits {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestUpdateWritesWhatCame(t *testing.T) {
	p := &play{update: true, vector: Vector{files: []file{{"want", []byte(`{"ok":true,"error":{"code":"a","step":1}}`)}}}}
	got, err := parseJSON([]byte(`{"ok":false,"pack_id":"p","error":{"code":"b","step":2,"hint":"h"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.compare("want", got, true); err != nil {
		t.Fatal(err)
	}
	text, _ := p.vector.file("want")
	if n, err := parseJSON(text); err != nil || string(n.Append(nil)) != `{"ok":false,"error":{"code":"b","step":2}}` {
		t.Errorf("wrote %s, %v", text, err)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("prose\n-- a --\nx\n-- b --\n"))
	f.Add([]byte("-- --\n--  --\n-- a --"))
	f.Fuzz(func(t *testing.T, src []byte) {
		v := Vector{}
		v.comment, v.files = split(src)
		first := v.format()
		v.comment, v.files = split(first)
		if second := v.format(); string(first) != string(second) {
			t.Errorf("formatted twice: %q and %q", first, second)
		}
	})
}
