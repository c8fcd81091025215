package conformance

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/order"
)

//go:embed vectors/*.txtar
var archives embed.FS

// Vector is one executable vector. Its text is an archive: prose with the lines "section:" and "rules:", then
// the file "script" and the files that the script names.
type Vector struct {
	Name      string
	Section   string
	Rules     []string // rule numbers that it proves (requirements.txt)
	About     string   // the prose, one paragraph
	Published bool
	Script    []Line
	comment   []byte
	files     []file
}

// Line is one command of a script.
type Line struct {
	Number int
	Words  []string
	Rest   string // what stands after the second word, as written
}

type file struct {
	name string
	data []byte
}

// Vectors are all vectors: the published nine first, in the order of §14.5, then by name.
func Vectors() ([]Vector, error) {
	entries, err := archives.ReadDir("vectors")
	if err != nil {
		return nil, err
	}
	var all []Vector
	for _, e := range entries {
		src, err := archives.ReadFile("vectors/" + e.Name())
		if err != nil {
			return nil, err
		}
		v, err := parse(strings.TrimSuffix(e.Name(), ".txtar"), src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		all = append(all, v)
	}
	order.By(all, func(a, b Vector) int { return rank(a.Name) - rank(b.Name) })
	return all, nil
}

func rank(name string) int {
	if i := slices.Index(Published(), name); i >= 0 {
		return i
	}
	return len(Published())
}

func parse(name string, src []byte) (Vector, error) {
	v := Vector{Name: name, Published: slices.Contains(Published(), name)}
	v.comment, v.files = split(src)
	var about []string
	for line := range strings.Lines(string(v.comment)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "section:"); ok {
			v.Section = strings.TrimSpace(rest)
		} else if rest, ok := strings.CutPrefix(line, "rules:"); ok {
			v.Rules = append(v.Rules, strings.Fields(rest)...)
		} else if line != "" {
			about = append(about, line)
		}
	}
	v.About = strings.Join(about, " ")
	script, ok := v.file("script")
	if !ok || v.Section == "" || v.About == "" {
		return v, errors.New("a vector needs prose, a section and a script")
	}
	number := 0
	for text := range strings.Lines(string(script)) {
		number++
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		words := strings.Fields(text)
		rest := strings.TrimSpace(strings.TrimPrefix(text, words[0]))
		if len(words) > 1 {
			rest = strings.TrimSpace(strings.TrimPrefix(rest, words[1]))
		}
		v.Script = append(v.Script, Line{Number: number, Words: words, Rest: rest})
	}
	return v, nil
}

func (v *Vector) file(name string) ([]byte, bool) {
	i := slices.IndexFunc(v.files, func(f file) bool { return f.name == name })
	if i < 0 {
		return nil, false
	}
	return v.files[i].data, true
}

func (v *Vector) setFile(name string, data []byte) {
	i := slices.IndexFunc(v.files, func(f file) bool { return f.name == name })
	if i < 0 {
		v.files = append(v.files, file{name, data})
		return
	}
	v.files[i].data = data
}

// split reads an archive: a comment, then files, each behind a line "-- name --".
func split(src []byte) (comment []byte, files []file) {
	for line := range bytes.Lines(src) {
		name, ok := marker(line)
		switch {
		case ok:
			files = append(files, file{name: name})
		case len(files) == 0:
			comment = append(comment, line...)
		default:
			last := &files[len(files)-1]
			last.data = append(last.data, line...)
		}
	}
	return comment, files
}

func marker(line []byte) (string, bool) {
	text, ok := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), "-- ")
	if !ok {
		return "", false
	}
	text, ok = strings.CutSuffix(text, " --")
	return strings.TrimSpace(text), ok && strings.TrimSpace(text) != ""
}

func (v *Vector) format() []byte {
	out := slices.Clone(v.comment)
	for _, f := range v.files {
		out = append(out, "-- "+f.name+" --\n"...)
		out = append(out, f.data...)
		if len(f.data) > 0 && f.data[len(f.data)-1] != '\n' {
			out = append(out, '\n')
		}
	}
	return out
}
