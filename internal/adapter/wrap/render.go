package wrap

import (
	"fmt"
	"strconv"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// maxElement is the longest argument that Linux hands to a program, without the NUL behind it.
const maxElement = 128<<10 - 1

// maxArgv is how much Linux hands to a program in all: a quarter of its usual stack of 8 MiB, with each argument's
// NUL and pointer, less what the environment and the program's name take.
const maxArgv = 2<<20 - 256<<10

// whole refuses an argv that no program could be started with.
func (r *renderer) whole() {
	total := 0
	for _, a := range r.argv {
		total += len(a) + 1 + 8
	}
	if total > maxArgv {
		r.refuse("", "make a command line of %d bytes, and a program takes at most %d", total, maxArgv)
	}
}

// renderer makes one argv from arguments that fit their schema.
type renderer struct {
	args       *jsondoc.Node
	argv       []string
	guarded    bool // a literal "--" was rendered
	violations []protocol.Violation
}

// around is what surrounds an element while it is rendered.
type around struct {
	group bool   // an absent argument drops the group
	array string // the argument of the innermost each
	index int
	item  *jsondoc.Node
}

// pointer names the argument of a placeholder.
func (w around) pointer(p part) string {
	if p.arg == "" {
		return jsondoc.Pointer(w.array, strconv.Itoa(w.index))
	}
	return jsondoc.Pointer(p.arg)
}

// blame names the first argument in a string; the template's own text has none.
func (w around) blame(parts []part) string {
	for _, p := range parts {
		if p.placeholder {
			return w.pointer(p)
		}
	}
	return ""
}

func (r *renderer) refuse(pointer, format string, a ...any) {
	r.violations = append(r.violations, protocol.Violation{Pointer: pointer, Message: fmt.Sprintf(format, a...)})
}

// list renders elements in order. It is true when an absent argument drops the group around them.
func (r *renderer) list(elements []element, w around) (absent bool) {
	for i := range elements {
		if r.element(&elements[i], w) {
			return true
		}
	}
	return false
}

func (r *renderer) element(e *element, w around) (absent bool) {
	switch e.form {
	case text:
		return r.text(e, w)
	case group:
		r.group(e, w)
		return false
	case branch:
		if r.holds(e.arg) {
			return r.list(e.body, w)
		}
		return r.list(e.otherwise, w)
	default:
		return r.each(e, w)
	}
}

// group keeps or drops its elements as a whole (§3.3); what a dropped one had refused no longer counts.
func (r *renderer) group(e *element, w around) {
	argv, guarded, violations := len(r.argv), r.guarded, len(r.violations)
	w.group = true
	if r.list(e.body, w) {
		r.argv, r.guarded, r.violations = r.argv[:argv], guarded, r.violations[:violations]
	}
}

// holds is the condition of an if: a boolean argument's value, or the presence of any other (§3.3).
func (r *renderer) holds(arg string) bool {
	v := r.args.Get(arg)
	if v != nil && v.Kind == jsondoc.Bool {
		return v.Text == "true"
	}
	return v != nil
}

func (r *renderer) each(e *element, w around) (absent bool) {
	v := r.args.Get(e.arg)
	if v == nil {
		return w.group
	}
	if v.Kind != jsondoc.Array {
		r.refuse(jsondoc.Pointer(e.arg), "must be an array here")
		return false
	}
	w.array = e.arg
	for w.index, w.item = range v.Items {
		if r.list(e.body, w) {
			return true
		}
	}
	return false
}

// text renders one string to exactly one argv element, or to none when an argument is absent, and applies
// the option injection guard of §3.3.
func (r *renderer) text(e *element, w around) (absent bool) {
	s, first, ok := r.join(e.parts, w)
	if !ok {
		return w.group
	}
	if p := e.parts[first]; s != "" && s[0] == '-' && p.placeholder && !p.dash && !r.guarded {
		r.refuse(w.pointer(p), "begins with a dash, so the program would read it as an option")
	}
	if len(s) > maxElement {
		r.refuse(w.blame(e.parts), "makes an argument of more than %d bytes", maxElement)
	}
	r.guarded = r.guarded || e.isGuard()
	r.argv = append(r.argv, s)
	return false
}

// join renders the parts of one string; first is the part that its first byte comes from. It is not ok
// when an argument is absent; what the other parts had refused counts no longer then.
func (r *renderer) join(parts []part, w around) (s string, first int, ok bool) {
	if len(parts) == 1 {
		s, ok = r.part(parts[0], w)
		return s, 0, ok
	}
	var b strings.Builder
	violations := len(r.violations)
	for i, p := range parts {
		piece, ok := r.part(p, w)
		if !ok {
			r.violations = r.violations[:violations]
			return "", 0, false
		}
		if b.Len() == 0 {
			first = i
		}
		b.WriteString(piece)
	}
	return b.String(), first, true
}

// part renders a literal or a placeholder. A string comes through byte for byte; NUL is always refused.
func (r *renderer) part(p part, w around) (s string, ok bool) {
	if !p.placeholder {
		return p.literal, true
	}
	v := w.item
	if p.arg != "" {
		v = r.args.Get(p.arg)
	}
	if v == nil {
		return "", false
	}
	s, ok = render(v, p.json)
	switch {
	case !ok:
		r.refuse(w.pointer(p), "is an object or an array, which this command can't take here")
	case strings.IndexByte(s, 0) >= 0:
		r.refuse(w.pointer(p), "holds a NUL character")
	}
	return s, true
}

// render is one value as text (§3.3): numbers without exponent where exact, true and false, null; as JSON
// when asked. An object or array has no other form.
func render(v *jsondoc.Node, asJSON bool) (string, bool) {
	switch v.Kind {
	case jsondoc.Number:
		return jsondoc.Written(v.Text), true
	case jsondoc.Bool:
		return v.Text, true
	case jsondoc.Null:
		return "null", true
	case jsondoc.String:
		if !asJSON {
			return v.Text, true
		}
	}
	if !asJSON {
		return "", false
	}
	return string(plain(v).Append(nil)), true
}

// plain is v with its numbers written as render writes them.
func plain(v *jsondoc.Node) *jsondoc.Node {
	out := *v
	switch v.Kind {
	case jsondoc.Number:
		out.Text = jsondoc.Written(v.Text)
	case jsondoc.Array:
		out.Items = make([]*jsondoc.Node, len(v.Items))
		for i, item := range v.Items {
			out.Items[i] = plain(item)
		}
	case jsondoc.Object:
		out.Members = make([]jsondoc.Member, len(v.Members))
		for i, m := range v.Members {
			out.Members[i] = jsondoc.Member{Key: m.Key, Value: plain(m.Value)}
		}
	}
	return &out
}
