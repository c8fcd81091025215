package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// PreviewEnvelope asks the preview of a request, with the request's own arguments (§15.3).
func PreviewEnvelope(pack, verb string, args json.RawMessage) []byte {
	envelope := append([]byte(`{"pack_id":`), jsondoc.Str(pack).Append(nil)...)
	envelope = append(append(envelope, `,"verb_key":`...), jsondoc.Str(verb).Append(nil)...)
	envelope = append(append(envelope, `,"args":`...), args...)
	return append(envelope, '}')
}

// PreviewHash is what an approval binds of a preview's answer: its value, whatever the order of its members.
func PreviewHash(r protocol.Result) string {
	text := []byte(r.Result)
	if n, faults := jsondoc.Parse(text, jsondoc.Limits{Bytes: len(text) + 1}); n != nil && len(faults) == 0 {
		text = n.Canonical(nil)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
