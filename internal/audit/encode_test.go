package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An entry's line says what its tags say: all fields, filled or not, with the bytes of encoding/json.
func Test_15_4_TheLineOfAnEntry(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	k := newKey("", make([]byte, ed25519.PrivateKeySize))
	for range 2000 {
		var e Entry
		v := reflect.ValueOf(&e).Elem()
		for i := range v.NumField() {
			if r.IntN(3) > 0 {
				fill(t, r, v.Field(i))
			}
		}
		got, err := encodeEntry(&e, k) // fills in the MAC
		if err != nil || !k.wrote(bytes.TrimSuffix(got, []byte("\n"))) {
			t.Fatalf("%s, %v", got, err)
		}
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e); err != nil {
			t.Fatal(err)
		}
		if string(got) != want.String() {
			t.Fatal(cmp.Diff(want.String(), string(got)))
		}
	}
}

func fill(t *testing.T, r *rand.Rand, v reflect.Value) {
	texts := []string{"", "a", `"quoted\"`, "<&>\n\t\x01", "ünïcode 😀"}
	switch x := v.Addr().Interface().(type) {
	case *string:
		*x = texts[r.IntN(len(texts))]
	case *[]string:
		for range r.IntN(3) {
			*x = append(*x, texts[r.IntN(len(texts))])
		}
	case *uint64:
		*x = r.Uint64()
	case *int:
		*x = r.IntN(9) - 4
	case **int:
		*x = new(int)
		**x = r.IntN(256)
	case *float64:
		*x = float64(r.IntN(1e6)) / 1000
	case *json.RawMessage:
		*x = []json.RawMessage{nil, {}, []byte(`{ "a" : [1.50, "<x>"]` + "\n}"), []byte("null")}[r.IntN(4)]
	default:
		t.Fatalf("a field of %T", x)
	}
}

func Test_15_4_WhatIsNoEntryIsNotWritten(t *testing.T) {
	k := newKey("", make([]byte, ed25519.PrivateKeySize))
	for name, e := range map[string]Entry{
		"not a number": {DurationMS: math.NaN()}, "infinite": {DurationMS: math.Inf(-1)},
		"half a value": {Args: json.RawMessage(`{"a":`)}, "two values": {Detail: json.RawMessage("1 2")},
		"too long": {Message: string(make([]byte, maxLine))},
	} {
		if _, err := encodeEntry(&e, k); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	got, err := encodeEntry(&Entry{Message: "\xff\n"}, k)
	if err != nil || !json.Valid(got) || bytes.Count(got, []byte("\n")) != 1 {
		t.Errorf("%q, %v", got, err)
	}
}
