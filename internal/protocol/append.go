package protocol

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// AppendJSON writes the envelope of §6.2 by hand: its members in their order, the result as it is. It says what
// encoding/json says without escaping for HTML, and saves a cold exec the reflection over these types.
func (r Result) AppendJSON(dst []byte) []byte {
	if r.Said != nil {
		return append(dst, r.Said...)
	}
	dst = append(dst, `{"ok":`...)
	if r.OK {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	dst = appendString(append(dst, `,"pack_id":`...), r.PackID)
	dst = appendString(append(dst, `,"verb_key":`...), r.VerbKey)
	if len(r.Result) > 0 {
		dst = append(append(dst, `,"result":`...), r.Result...)
	}
	if r.Error != nil {
		dst = append(append(dst, `,"error":`...), r.Error.json()...)
	}
	return append(dst, '}')
}

// json is the error as JSON. Details that cannot be written are left out: code and message always arrive.
func (e *Error) json() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err == nil {
		return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	bare := *e
	bare.Details = nil
	b.Reset()
	_ = enc.Encode(bare) // strings and a number: it cannot fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// appendString quotes s; bytes that are not UTF-8 become the replacement character.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return append(dst, '"')
}

// ReadResult reads an envelope that AppendJSON wrote; AppendJSON gives the same bytes again. Details are strings, or JSON.
func ReadResult(src []byte) (Result, error) {
	var wire struct {
		OK      bool            `json:"ok"`
		PackID  string          `json:"pack_id"`
		VerbKey string          `json:"verb_key"`
		Result  json.RawMessage `json:"result"`
		Error   *struct {
			Error
			Details map[string]json.RawMessage `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal(src, &wire); err != nil {
		return Result{}, err
	}
	r := Result{OK: wire.OK, PackID: wire.PackID, VerbKey: wire.VerbKey, Result: wire.Result, Said: src}
	if wire.Error == nil {
		return r, nil
	}
	r.Error = &wire.Error.Error
	for key, value := range wire.Error.Details {
		var text string
		if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &text) == nil {
			r.Error = r.Error.With(key, text)
		} else {
			r.Error = r.Error.With(key, value)
		}
	}
	return r, nil
}
