package mcp

import (
	"encoding/json"
	"unicode/utf8"

	"hcpx/internal/protocol"
)

// Bounds of an answer (§12.2): what is longer goes to a file that the store keeps for a day, and the model gets its beginning.
const (
	maxAnswer    = 64 << 10
	previewBytes = 2 << 10
)

// fit is the Result as a model can take it: the one difference between faces that §6.6 allows. Where the file cannot be
// made, the answer is whole: what was done must not be lost.
func (v *server) fit(s protocol.Session, r protocol.Result) protocol.Result {
	if !r.OK || len(r.Result) <= maxAnswer {
		return r
	}
	name, text := "result.json", []byte(r.Result)
	var plain string
	if json.Unmarshal(text, &plain) == nil {
		name, text = "result.txt", []byte(plain)
	}
	path, err := v.Life.Store.KeepResult(s.Tenant, v.NewID(), name, text)
	if err != nil {
		v.log.Error("a large result could not be left in a file: " + err.Error())
		return r
	}
	out := r
	out.Said = nil
	if out.Result, err = json.Marshal(struct {
		File    string `json:"file"`
		Bytes   int    `json:"bytes"`
		Preview string `json:"preview"`
	}{path, len(text), preview(text)}); err != nil {
		return r
	}
	return out
}

// preview is the beginning, cut between characters.
func preview(text []byte) string {
	n := min(len(text), previewBytes)
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return string(text[:n])
}
