package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Deny is what a project forbids: a denying grant that holds in its workspace. What is empty speaks of all.
type Deny struct {
	Principal                            string
	Capabilities, Packs, Verbs, Projects []string
	Args                                 map[string][]any // each a string, an int64 or a bool
	File                                 string
	Line, Column                         int
}

// Where names the deny for the path of a decision: its file and line.
func (d Deny) Where() string { return project + ":" + strconv.Itoa(d.Line) }

// Wrong is the deny as a problem of its file.
func (d Deny) Wrong(message string) *Error {
	return &Error{[]Problem{{File: d.File, Line: d.Line, Column: d.Column, Message: message}}}
}

// String is the deny in one line for people.
func (d Deny) String() string {
	parts := []string{}
	for _, axis := range []struct {
		name string
		list []string
	}{{"", d.Capabilities}, {"pack=", d.Packs}, {"verb=", d.Verbs}, {"project=", d.Projects}} {
		if len(axis.list) > 0 {
			parts = append(parts, axis.name+strings.Join(axis.list, ","))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Args)) {
		for _, v := range d.Args[name] {
			parts = append(parts, fmt.Sprintf("%s=%v", name, v))
		}
	}
	who := d.Principal
	if who == "" {
		who = "*"
	}
	return strings.Join(append([]string{who}, parts...), " ")
}

// maxProject bounds a project's file: it comes with a repository, from anybody.
const maxProject = 64 << 10

// Narrow are the settings in the workspace root, whose hcp.toml may narrow them and nothing else (§9.3): packs.allow,
// lower limits, a narrower confirm.agent, sandbox.accept, sandbox.native_local and sandbox.dangerous, and [[deny]].
// Without the file they are s itself. The file is a regular one, and no link, or it is an error.
func (s *Settings) Narrow(root string) (*Settings, error) {
	path := filepath.Join(root, project)
	src, err := readProject(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	n := *s
	n.from = maps.Clone(s.from)
	problems, err := n.take(path, project, src, err)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, &Error{problems}
	}
	return &n, nil
}

// readProject reads a file that others may write: whoever can write the workspace may narrow what is done in it.
func readProject(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|noFollow, 0)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) {
			return nil, errors.New("it is a link")
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	src, err := io.ReadAll(io.LimitReader(f, maxProject+1))
	if err == nil && len(src) > maxProject {
		err = fmt.Errorf("it is longer than %d bytes", maxProject)
	}
	return src, err
}

// denyTable is how a [[deny]] is told from the settings.
const denyTable = "deny."

// denies says whether a name belongs to the [[deny]] that was begun last.
func (r *reading) denies(name string) bool { return r.deny > 0 && strings.HasPrefix(name, denyTable) }

// begin starts a [[deny]].
func (r *reading) begin(at unstable.Range) {
	if r.deny == 0 {
		r.s.Denies = nil // not the slice of the settings above
	}
	r.deny++
	d := Deny{File: r.file}
	d.Line, d.Column = placeOf(r.parser.Data(), int(at.Offset))
	r.s.Denies = append(r.s.Denies, d)
}

// denyPair takes one member of the current [[deny]].
func (r *reading) denyPair(name string, at unstable.Range, v *unstable.Node) {
	member := strings.TrimPrefix(name, denyTable)
	if member == "args" && v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			inner, at := dotted(it.Node().Key())
			r.denyPair(name+"."+inner, at, it.Node().Value())
		}
		return
	}
	if !r.once(fmt.Sprintf("%s (deny %d)", member, r.deny), at) {
		return
	}
	if v.Raw.Length > 0 {
		at = v.Raw
	}
	if wrong := r.s.Denies[len(r.s.Denies)-1].put(member, valueOf(v)); wrong != "" {
		r.wrong(at, wrong, "")
	}
}

// put sets a member, or says what is wrong with it.
func (d *Deny) put(member string, v value) string {
	if name, ok := strings.CutPrefix(member, "args."); ok && name != "" {
		return d.putArg(name, v)
	}
	if member == "principal" {
		d.Principal = v.text
		if v.kind != text || v.text == "" {
			return `principal is a pattern, as "agent:*"`
		}
		return ""
	}
	list, ok := v.texts()
	ok = ok && len(list) > 0
	switch member {
	case "capabilities":
		d.Capabilities = list
		ok = ok && !slices.ContainsFunc(list, func(c string) bool { return c != "verb.exec.read" && c != "verb.exec.write" })
		if !ok {
			return "capabilities are some of verb.exec.read and verb.exec.write"
		}
	case "packs":
		d.Packs = list
	case "verbs":
		d.Verbs = list
	case "projects":
		d.Projects = list
	default:
		return member + " is no member of a deny; these are: principal, capabilities, packs, verbs, projects, args"
	}
	if !ok {
		return member + ` is a list of patterns, as ["git"]`
	}
	return ""
}

// putArg is a rule on an argument: one value or several.
func (d *Deny) putArg(name string, v value) string {
	values := v.list
	if v.kind != list {
		values = []value{v}
	}
	rule := []any{}
	for _, one := range values {
		n, err := strconv.ParseInt(strings.ReplaceAll(one.text, "_", ""), 0, 64)
		switch {
		case one.kind == text:
			rule = append(rule, one.text)
		case one.kind == boolean:
			rule = append(rule, one.text == "true")
		case one.kind == number && err == nil:
			rule = append(rule, n)
		default:
			return "a rule on an argument is a text, a whole number, true or false, or a list of them"
		}
	}
	if len(rule) == 0 {
		return "a rule on an argument names at least one value"
	}
	if d.Args == nil {
		d.Args = map[string][]any{}
	}
	d.Args[name] = rule
	return ""
}
