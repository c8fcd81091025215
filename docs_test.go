package hcpx

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hcpx/internal/sandbox"
)

// literals are the strings that stand in one variable or function of a file; of a function with cases, those
// of the cases.
func literals(t *testing.T, file, name string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	gather := func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			s, err := strconv.Unquote(l.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return true
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name != name {
				return false
			}
			before := len(out)
			ast.Inspect(n, func(n ast.Node) bool {
				if c, ok := n.(*ast.CaseClause); ok {
					for _, e := range c.List {
						ast.Inspect(e, gather)
					}
				}
				return true
			})
			if len(out) == before {
				ast.Inspect(n, gather)
			}
			return false
		case *ast.ValueSpec:
			if slices.ContainsFunc(n.Names, func(i *ast.Ident) bool { return i.Name == name }) {
				ast.Inspect(n, gather)
			}
		}
		return true
	})
	if len(out) == 0 {
		t.Fatalf("%s has no list %s", file, name)
	}
	return out
}

// code are the spans in backticks of a page.
func code(t *testing.T, page string) map[string]bool {
	t.Helper()
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	spans := map[string]bool{}
	for _, m := range regexp.MustCompile("`+([^`\n]+)`+").FindAllStringSubmatch(string(src), -1) {
		spans[m[1]] = true
	}
	return spans
}

// §10.2: a pack author finds every name and place that is refused or given in docs/spec, as the code has it.
func Test_10_2_PageHasTheWholeLists(t *testing.T) {
	page := code(t, "docs/spec/10-isolation.md")
	for _, list := range []struct{ file, name string }{
		{"internal/manifest/env.go", "steeringNames"},
		{"internal/manifest/env.go", "credentialNames"},
		{"internal/protocol/closed.go", "HomeCredentials"},
		{"internal/protocol/closed.go", "ConfigCredentials"},
		{"internal/protocol/closed.go", "systemStores"},
		{"internal/gate/programs.go", "Interpreter"},
		{"internal/gate/programs.go", "launcher"},
		{"internal/sandbox/base_linux.go", "basePaths"},
		{"internal/sandbox/base_linux.go", "fullPaths"},
	} {
		for _, s := range literals(t, list.file, list.name) {
			if !page[s] {
				t.Errorf("%s: %s is not on the page", list.name, s)
			}
		}
	}
}

// §10.5: the page names the rules of doctor's table, each once, and what their states mean.
func Test_10_5_PageHasTheRules(t *testing.T) {
	src, err := os.ReadFile("docs/spec/10-isolation.md")
	if err != nil {
		t.Fatal(err)
	}
	column := func(head string) (first []string) {
		_, rest, found := strings.Cut(string(src), head+"\n| --- | --- |\n")
		if !found {
			t.Fatalf("the page has no table %s", head)
		}
		for _, line := range strings.Split(rest, "\n") {
			cells := strings.Split(line, "|")
			if len(cells) < 3 {
				break
			}
			for _, name := range strings.Split(cells[1], ",") {
				first = append(first, strings.Trim(name, " `"))
			}
		}
		slices.Sort(first)
		return first
	}
	kernel := sandbox.Kernel{System: "linux/amd64", Supported: true, ABI: 7, Filter: true, Notify: true, CloseRange: true, Openat2: true, GetFd: true}
	var rules []string
	for _, r := range sandbox.New(sandbox.Options{Kernel: &kernel}).Facts().Rules {
		rules = append(rules, r.Name)
	}
	slices.Sort(rules)
	if page := column("| rule | what holds it |"); !slices.Equal(page, rules) {
		t.Errorf("the page has the rules\n%v, the code\n%v", page, rules)
	}
	if states := column("| state | means |"); !slices.Equal(states, []string{"degraded", "enforced", "missing"}) {
		t.Errorf("states: %v", states)
	}
	_, mac, _ := strings.Cut(string(src), "Weaker than Linux, and shown so:")
	mac, _, _ = strings.Cut(mac, "are missing.")
	kernel = sandbox.Kernel{System: "darwin/arm64", Seatbelt: true}
	for _, r := range sandbox.New(sandbox.Options{Kernel: &kernel}).Facts().Rules {
		if weaker := r.State != "enforced"; r.Name != "canary" && weaker != strings.Contains(mac, "`"+r.Name+"`") {
			t.Errorf("macOS: %s is %s, the page says otherwise", r.Name, r.State)
		}
	}
}

// §2.2, §12.1: the same for reserved ids and the command line's own flags.
func Test_2_2_PagesHaveTheReservedNames(t *testing.T) {
	src, err := os.ReadFile("docs/spec/02-pack.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.FieldsFunc(string(src), func(r rune) bool { return strings.ContainsRune(" ,\n`.", r) })
	for _, id := range literals(t, "internal/manifest/names.go", "reserved") {
		if !slices.Contains(words, id) {
			t.Errorf("the reserved id %s is not on the page", id)
		}
	}
	page := code(t, "docs/spec/03-manifest.md")
	for _, flag := range literals(t, "internal/manifest/names.go", "ownFlags") {
		if !page[flag] {
			t.Errorf("the flag %s is not on the page", flag)
		}
	}
}

// docs/layout.md puts every room on one shelf, and nothing else.
func TestDocsLayoutHasTheRooms(t *testing.T) {
	src, err := os.ReadFile("docs/layout.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(src), "| shelf | rooms |\n| --- | --- |\n")
	table, _, end := strings.Cut(table, "\n\n")
	if !found || !end {
		t.Fatal("the page has no shelves")
	}
	count := map[string]int{"bench": 0} // a program without a row in the table of imports
	for _, row := range rooms {
		count[strings.TrimPrefix(row.name, "internal/")] = 0
	}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(table, -1) {
		name := m[1]
		if _, known := count["adapter/"+name]; known {
			name = "adapter/" + name // they stand behind their contract
		}
		if _, known := count[name]; !known {
			t.Errorf("%s stands on a shelf and is no room", name)
		}
		count[name]++
	}
	for name, times := range count {
		if times != 1 {
			t.Errorf("%s stands on %d shelves", name, times)
		}
	}
}

// Every link between the pages leads somewhere.
func TestDocsLinksLead(t *testing.T) {
	var pages []string
	for _, glob := range []string{"*.md", "docs/*.md", "docs/*/*.md", "changes/*.md"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		src, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`).FindAllStringSubmatch(string(src), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

// A page that names a test names one that is there.
func TestDocsNameTestsThatExist(t *testing.T) {
	known := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	walk(t, "_test.go", func(src string) {
		for _, m := range declared.FindAllStringSubmatch(src, -1) {
			known[m[1]] = true
		}
	})
	named := regexp.MustCompile("`(Test\\w+)`")
	n := 0
	walk(t, ".md", func(src string) {
		for _, m := range named.FindAllStringSubmatch(src, -1) {
			if n++; !known[m[1]] {
				t.Errorf("there is no test %s", m[1])
			}
		}
	})
	if n < 40 {
		t.Errorf("%d names were found", n)
	}
}

// walk reads every file of the repository whose name ends so.
func walk(t *testing.T, ending string, read func(src string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		src, err := os.ReadFile(path)
		read(string(src))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
