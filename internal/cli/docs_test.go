package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// docs/cli.md is made from the command tree: go test ./internal/cli -update writes it.
func TestDocs(t *testing.T) {
	h := describe(wholeTree(t))
	var b strings.Builder
	b.WriteString("# Commands\n\nMade from the command tree by `go test ./internal/cli -update`; do not edit.\n\n" + h.About + "\n\n")
	b.WriteString("Exit codes: 0 done · 1 it ran and failed, or a failure not named here · 3 refused · 64 the command line, envelope or\n" +
		"arguments are wrong · 70 the runtime is broken. `doctor` and `status`: 0 healthy, 2 a warning, 1 a failure.\n\n")
	b.WriteString("With `--json` stdout is one JSON value, errors too (`{\"error\": {\"code\", \"message\", \"hint\"}}`); `exec` always answers\n" +
		"the result envelope once pack and verb are known. Questions are put to a person on a terminal only.\n\n")
	b.WriteString("## Flags of every command\n\n" + flagLines(h.Flags))
	for _, g := range groups() {
		fmt.Fprintf(&b, "\n## %s\n", g)
		for _, c := range h.Commands {
			if c.Group == g {
				docsOf(&b, c)
			}
		}
	}
	b.WriteString("\n## Not on the help page\n\nHints name them, and installers and generators call them.\n")
	for _, e := range table() {
		if e.hidden {
			docsOf(&b, describe(child(wholeTree(t), e.name)))
		}
	}
	golden(t, filepath.Join("..", "..", "docs", "cli.md"), []byte(b.String()))
}

func docsOf(b *strings.Builder, c commandHelp) {
	fmt.Fprintf(b, "\n### %s\n\n%s.", c.Name, c.Summary)
	if c.About != "" {
		b.WriteString(" " + strings.ReplaceAll(c.About, "\n", " "))
	}
	fmt.Fprintf(b, "\n\n```\n%s\n```\n\n", c.Usage)
	if len(c.Flags) > 0 {
		b.WriteString(flagLines(c.Flags) + "\n")
	}
	fmt.Fprintf(b, "```sh\n%s\n```\n", strings.Join(c.Examples, "\n"))
	for _, sub := range c.Commands {
		docsOf(b, sub)
	}
}

func flagLines(flags []flagHelp) string {
	var b strings.Builder
	b.WriteString("| flag | |\n| --- | --- |\n")
	for _, f := range flags {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimSpace(f.Name+" "+f.Value), strings.ReplaceAll(f.Summary, "|", "\\|"))
	}
	return b.String()
}
