package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"hcpx/internal/protocol"
)

// Bounds of an answer (§12.2): what is longer goes to a file that is kept for a day, and the model gets its beginning.
const (
	maxAnswer    = 64 << 10
	previewBytes = 2 << 10
	resultLasts  = 24 * time.Hour
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
	path, err := v.leave(name, text)
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

// leave writes a new file that only this user can read, in a directory of its own.
func (v *server) leave(name string, text []byte) (string, error) {
	v.tidy()
	dir := filepath.Join(v.Results, v.NewID())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return path, err
}

// tidy removes what has lain there for a day.
func (v *server) tidy() {
	entries, err := os.ReadDir(v.Results)
	if err != nil {
		return // nothing was left yet
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && v.Now().Sub(info.ModTime()) > resultLasts {
			if err := os.RemoveAll(filepath.Join(v.Results, e.Name())); err != nil {
				v.log.Warn("an old result stays: " + err.Error())
			}
		}
	}
}
