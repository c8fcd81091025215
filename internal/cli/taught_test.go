package cli

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hcpx/examples"
	"hcpx/internal/adapter/openapi"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
)

// §6.7, §14.2: every command line that a shipped skill teaches has a command, and arguments that its schema takes.
func Test_6_7_WhatTheSkillsTeachIsTakenByTheSchemas(t *testing.T) {
	span := regexp.MustCompile("`[^`]+`")
	whole := regexp.MustCompile(`^[a-z_]+:?=\S`)
	lines, parts := 0, 0
	for _, id := range examples.IDs() {
		m := shippedManifest(t, id)
		for _, code := range span.FindAllString(harness(t, id), -1) {
			code = strings.Trim(code, "`")
			switch words := taughtWords(t, code); {
			case words[0] == "hcpx":
				lines++
				taughtLine(t, id, words[1:])
			case whole.MatchString(code):
				parts++
				taughtPart(t, m, words)
			}
		}
	}
	if lines < 40 || parts < 20 {
		t.Errorf("only %d lines and %d parts of lines were found", lines, parts)
	}
}

// taughtLine holds a whole command line against the command that it names; hcpx's own words must be there.
func taughtLine(t *testing.T, id string, words []string) {
	t.Helper()
	shown := id + ": hcpx " + strings.Join(words, " ")
	if words[0] != "exec" {
		if !slices.ContainsFunc(table(), func(e entry) bool { return e.name == words[0] }) && !slices.Contains(examples.IDs(), words[0]) {
			t.Errorf("%s: there is no such command", shown)
		}
		return
	}
	if len(words) < 3 || !slices.Contains(examples.IDs(), words[1]) {
		t.Errorf("%s: no pack and command", shown)
		return
	}
	c := shippedManifest(t, words[1]).Command(words[2])
	if c == nil {
		t.Errorf("%s: no such command", shown)
		return
	}
	i := slices.Index(words, "--")
	if i < 0 {
		return // the command is named, and its arguments are left out
	}
	args := slices.DeleteFunc(slices.Clone(words[i+1:]), func(w string) bool { return strings.HasSuffix(w, "=…") })
	for _, why := range untaken(t, c, args, len(args) < len(words)-i-1) {
		t.Errorf("%s: %s", shown, why)
	}
}

// taughtPart holds arguments that stand alone against the commands of the pack: one of them must take them.
func taughtPart(t *testing.T, m *manifest.Manifest, words []string) {
	t.Helper()
	var last []string
	for _, c := range m.Commands {
		if last = untaken(t, c, words, true); len(last) == 0 {
			return
		}
	}
	t.Errorf("%s: no command takes %q: %q", m.ID, words, last)
}

// untaken is what the schema of a command has against words, and JSON that went through as a text.
func untaken(t *testing.T, c *manifest.Command, words []string, part bool) []string {
	t.Helper()
	schema, err := c.Args()
	if err != nil {
		t.Fatal(err)
	}
	node, bad := buildArgs(words, schema.Node())
	var why []string
	for _, v := range append(bad, schema.Validate(schema.Defaults(node))...) {
		if !part || !strings.HasSuffix(v.Message, " is missing.") {
			why = append(why, v.Pointer+" "+v.Message)
		}
	}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		_, at := typing{schema.Node(), schema.Node()}.locate(key)
		if n, faults := jsondoc.Parse([]byte(value), jsondoc.Limits{}); len(faults) == 0 && n.Kind >= jsondoc.Array && !strings.HasSuffix(key, ":") && !at.takes("string") {
			why = append(why, w+" is JSON and goes as a text")
		}
	}
	return why
}

func shippedManifest(t *testing.T, id string) *manifest.Manifest {
	t.Helper()
	tree, err := examples.Pack(id)
	if err != nil {
		t.Fatal(err)
	}
	src, err := fs.ReadFile(tree, "surface.json")
	if err != nil {
		t.Fatal(err)
	}
	m, issues := manifest.Decode(src)
	if m == nil {
		t.Fatal(issues)
	}
	if o := openapi.New(openapi.Options{}); m.OpenAPI != nil {
		summary, issues := o.Summarize(m, tree)
		if len(issues) > 0 || !o.Adopt(m, summary) {
			t.Fatal(issues)
		}
	}
	return m
}

func harness(t *testing.T, id string) string {
	t.Helper()
	tree, err := examples.Pack(id)
	if err != nil {
		t.Fatal(err)
	}
	src, err := fs.ReadFile(tree, "HARNESS.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(src)
}

// taughtWords splits a line as a shell does with quotes.
func taughtWords(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	word, quote, open := "", rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && c == ' ':
			if open || word != "" {
				words = append(words, word)
			}
			word, open = "", false
		default:
			word += string(c)
		}
	}
	if quote != 0 {
		t.Fatalf("%s: a quote is open", line)
	}
	if open || word != "" || len(words) == 0 {
		words = append(words, word)
	}
	return words
}
