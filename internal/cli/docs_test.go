package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	b.WriteString("A first word that is none of these is a pack: `hcpx PACK WORDS… --flags` runs its command ([spec/12-face.md](spec/12-face.md)).\n\n")
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

// §6.2: the page names every value of details.rule that the code has, and no other.
func Test_6_2_ThePageHasEveryRule(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec/06-execute.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| `rule` |")
	table, _, end := strings.Cut(table, "\n\n")
	if !found || !end {
		t.Fatal("no table of rules")
	}
	told := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[min(1, len(cells)-1)], -1) {
			told[m[1]] = true
		}
	}
	code := map[string]bool{}
	said := regexp.MustCompile(`unavailable\("([a-z-]+)"|"rule", "([a-z-]+)"|Rule += "([a-z-]+)"`)
	row := regexp.MustCompile(`need\{"([a-z-]+)"|besideLandlock\("([a-z-]+)"|^\t\t\{"([a-z-]+)", ".*", (?:miss\w+|never), `)
	for _, room := range []string{"sandbox", "gate", "pipeline", "lifecycle", "adapter/wrap"} {
		files, err := filepath.Glob("../" + room + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(room, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for line := range strings.Lines(string(text)) {
				found := said.FindAllStringSubmatch(line, -1)
				if base := filepath.Base(file); base == "kernel.go" || base == "kernelspace.go" {
					found = append(found, row.FindAllStringSubmatch(line, -1)...)
				}
				for _, m := range found {
					code[strings.Join(m[1:], "")] = true
				}
			}
		}
	}
	for rule := range code {
		if !told[rule] {
			t.Errorf("the page does not have %s", rule)
		}
	}
	for rule := range told {
		if !code[rule] {
			t.Errorf("no code says %s", rule)
		}
	}
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
