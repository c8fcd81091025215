package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"hcpx/internal/jsondoc"
)

// encodeEntry writes the line of an entry, with the names and omissions of Entry's tags, and its MAC last.
// By hand: what reflection learns of a struct this wide costs a new process more than the rest of its append.
func encodeEntry(e *Entry, k *key) ([]byte, error) {
	w := writer{b: append(make([]byte, 0, 1<<10), '{')}
	w.number("seq", e.Seq)
	w.always("time", e.Time)
	w.always("kind", e.Kind)
	w.always("id", e.ID)
	w.text("parent", e.Parent)
	w.always("principal", e.Principal)
	w.text("tenant", e.Tenant)
	w.text("session", e.Session)
	w.text("project", e.Project)
	w.text("pack_id", e.Pack)
	w.text("digest", e.Digest)
	w.text("verb_key", e.Verb)
	w.text("operation", e.Operation)
	w.raw("args", e.Args)
	w.list("grant", e.Grant)
	w.text("plan_hash", e.PlanHash)
	w.text("confirm", e.Confirm)
	w.text("code", e.Code)
	if e.Step != 0 {
		w.integer("step", e.Step)
	}
	w.text("message", e.Message)
	if e.Exit != nil {
		w.integer("exit", *e.Exit)
	}
	w.float("duration_ms", e.DurationMS)
	w.raw("sandbox", e.Sandbox)
	w.text("act", e.Act)
	w.raw("detail", e.Detail)
	if e.Adopted != 0 {
		w.number("adopted", e.Adopted)
	}
	w.always("prev", e.Prev)
	e.MAC = k.entryMAC(w.b)
	w.always("mac", e.MAC)
	w.b = append(w.b, '}', '\n')
	if w.err == nil && len(w.b) > maxLine {
		w.err = fmt.Errorf("the entry is longer than %d bytes", maxLine)
	}
	return w.b, w.err
}

// writer writes the members of one object. All but number, integer and always leave out what is empty.
type writer struct {
	b   []byte
	err error
}

func (w *writer) key(name string) {
	if len(w.b) > 1 {
		w.b = append(w.b, ',')
	}
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

func (w *writer) number(name string, v uint64) {
	w.key(name)
	w.b = strconv.AppendUint(w.b, v, 10)
}

func (w *writer) integer(name string, v int) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, int64(v), 10)
}

func (w *writer) float(name string, v float64) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		w.err = fmt.Errorf("%s is not a number", name)
	case v != 0:
		w.key(name)
		w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
	}
}

func (w *writer) always(name, v string) {
	w.key(name)
	w.b = jsondoc.Str(v).Append(w.b)
}

func (w *writer) text(name, v string) {
	if v != "" {
		w.always(name, v)
	}
}

func (w *writer) list(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.key(name)
	for i, v := range list {
		w.b = jsondoc.Str(v).Append(append(w.b, "[,"[min(i, 1)]))
	}
	w.b = append(w.b, ']')
}

// raw puts JSON in, compact, so that it has no line ends; what is none is an error.
func (w *writer) raw(name string, v json.RawMessage) {
	if len(v) == 0 {
		return
	}
	w.key(name)
	b := bytes.NewBuffer(w.b)
	if err := json.Compact(b, v); err != nil {
		w.err = fmt.Errorf("%s is not JSON: %w", name, err)
		return
	}
	w.b = b.Bytes()
}
