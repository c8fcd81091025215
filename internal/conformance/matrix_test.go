package conformance

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/conformance.md")

const (
	root     = "../.."
	page     = "../../docs/conformance.md"
	baseline = "baseline.txt"
)

// row is one line of docs/conformance.md.
type row struct {
	Requirement
	Code   []string // functions whose doc comment has the number
	Proofs []string // tests and vectors
}

var (
	inComment = regexp.MustCompile(`HCP-[0-9]+(?:\.[0-9]+)?-[0-9]+[a-z]?`)
	inTest    = regexp.MustCompile(`HCP(?:_[0-9]+)+[a-z]?`)
)

// marks are the places of each rule number, found in the sources and the vectors.
type marks struct {
	rules        []Requirement
	code, proofs map[string][]string // by id
	unknown      []string            // numbers that no rule has
}

func rows(t *testing.T) ([]row, []string) {
	t.Helper()
	rules, err := Requirements()
	if err != nil {
		t.Fatal(err)
	}
	m := &marks{rules: rules, code: map[string][]string{}, proofs: map[string][]string{}}
	vectors, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		for _, id := range v.Rules {
			m.add(true, id, "vector `"+v.Name+"`")
		}
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		rel := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
		if strings.HasSuffix(rel, ".txtar") && path.Base(path.Dir(rel)) == "script" {
			return m.script(name, rel)
		}
		if strings.Contains(rel, "/testdata/") {
			return nil
		}
		if !strings.HasSuffix(name, ".go") || rel == "internal/conformance/matrix_test.go" {
			return nil
		}
		return m.scan(name, rel)
	})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]row, len(rules))
	for i, r := range rules {
		all[i] = row{r, tidy(m.code[r.ID]), tidy(m.proofs[r.ID])}
	}
	return all, tidy(m.unknown)
}

func tidy(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// add notes one place of a number, in either form. Where an item has several keywords, its number without a letter means all of them.
func (m *marks) add(proof bool, id, place string) {
	found, to := false, m.code
	if proof {
		to = m.proofs
	}
	for _, r := range m.rules {
		if slices.Contains([]string{r.ID, strings.TrimRight(r.ID, "ab"), r.Mark(), strings.TrimRight(r.Mark(), "ab")}, id) {
			to[r.ID] = append(to[r.ID], place)
			found = true
		}
	}
	if !found {
		m.unknown = append(m.unknown, id+" in "+place)
	}
}

// scan reads one source file. In a test, a rule is proved by the function whose name carries the number, or that
// runs a subtest whose name carries it, or whose doc comment names it; elsewhere a doc comment says who enforces it.
func (m *marks) scan(name, rel string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(rel, "_test.go")
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			m.function(d, path.Dir(rel), test)
		case *ast.GenDecl:
			if !test {
				m.comment(d.Doc, false, path.Dir(rel)+" `"+genName(d)+"`")
			}
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok && !test {
					m.comment(ts.Doc, false, path.Dir(rel)+" `"+ts.Name.Name+"`")
				}
			}
		}
	}
	if !test {
		m.comment(file.Doc, false, path.Dir(rel))
	}
	return nil
}

// script reads one script of testdata/script: its comments say which rules it proves.
func (m *marks) script(name, rel string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	room := path.Dir(path.Dir(path.Dir(rel)))
	for line := range strings.Lines(string(src)) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		for _, id := range inComment.FindAllString(line, -1) {
			m.add(true, id, room+" `"+path.Base(rel)+"`")
		}
	}
	return nil
}

func genName(d *ast.GenDecl) string {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			return s.Name.Name
		case *ast.ValueSpec:
			return s.Names[0].Name
		}
	}
	return d.Tok.String()
}

func (m *marks) function(d *ast.FuncDecl, dir string, test bool) {
	place := dir + " `" + d.Name.Name + "`"
	if !test {
		m.comment(d.Doc, false, place)
		return
	}
	if !strings.HasPrefix(d.Name.Name, "Test") && !strings.HasPrefix(d.Name.Name, "Fuzz") {
		return
	}
	m.comment(d.Doc, true, place)
	m.names(d.Name.Name, place)
	ast.Inspect(d, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			m.names(lit.Value, place)
			for _, id := range inComment.FindAllString(lit.Value, -1) {
				m.add(true, id, place)
			}
		}
		return true
	})
}

func (m *marks) comment(c *ast.CommentGroup, proof bool, place string) {
	for _, id := range inComment.FindAllString(c.Text(), -1) {
		m.add(proof, id, place)
	}
}

func (m *marks) names(text, place string) {
	for _, mark := range inTest.FindAllString(text, -1) {
		section := func(r Requirement) bool { return strings.HasPrefix(r.Mark(), mark+"_") }
		if !slices.ContainsFunc(m.rules, section) { // a test that names a section proves no rule of it
			m.add(true, mark, place)
		}
	}
}

// open reads the baseline: rules whose work is open, with what is missing.
func open(t *testing.T) map[string]string {
	t.Helper()
	src, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{}
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, text, ok := strings.Cut(line, "\t")
		if !ok {
			t.Errorf("%s: %q does not say what is missing", baseline, line)
		}
		missing[id] = text
	}
	return missing
}

// Test_14_3_EveryRuleHasAProof fails on a rule that neither a test nor a vector proves, unless the baseline says what
// is missing; on a line of the baseline that is stale; and on a mark that is no rule's number.
func Test_14_3_EveryRuleHasAProof(t *testing.T) {
	all, unknown := rows(t)
	missing := open(t)
	for _, r := range all {
		_, accepted := missing[r.ID]
		switch {
		case len(r.Proofs) == 0 && !accepted:
			t.Errorf("%s (%s: %s) has no test and no vector", r.ID, r.Level, r.Text)
		case len(r.Proofs) > 0 && accepted:
			t.Errorf("%s is proved now by %s: drop its line in %s", r.ID, strings.Join(r.Proofs, ", "), baseline)
		}
		delete(missing, r.ID)
	}
	for id := range missing {
		t.Errorf("%s names %s, which is no rule", baseline, id)
	}
	for _, u := range unknown {
		t.Errorf("no rule has the number %s", u)
	}
}

// TestPageIsMadeFromTheMarks holds docs/conformance.md against the marks; -update rewrites it.
func TestPageIsMadeFromTheMarks(t *testing.T) {
	all, _ := rows(t)
	got := render(all, open(t))
	if *update {
		if err := os.WriteFile(page, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/conformance.md is not what the marks say; run go test ./internal/conformance -update")
	}
}

func render(all []row, missing map[string]string) []byte {
	var out bytes.Buffer
	out.WriteString("# Conformance\n\n" +
		"Every MUST, SHOULD and MAY of the sections 1, 11, 12 and 14 of HCP/1.1, and the claims of §14.2 to §14.4, each with\n" +
		"what enforces it and the test or vector that proves it. This page is made from the marks in the sources by\n" +
		"`go test ./internal/conformance -update`; the same test fails when a rule has no proof. Vectors are run by\n" +
		"`hcpx conformance`.\n")
	proved := 0
	section := ""
	for _, r := range all {
		if s := sectionOf(r.ID); s != section {
			section = s
			fmt.Fprintf(&out, "\n## §%s\n\n| rule | level | demands | enforced by | proved by |\n| --- | --- | --- | --- | --- |\n", s)
		}
		proof := strings.Join(r.Proofs, "<br>")
		if len(r.Proofs) > 0 {
			proved++
		} else {
			proof = "open: " + missing[r.ID]
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", r.ID, r.Level, r.Text, strings.Join(r.Code, "<br>"), proof)
	}
	fmt.Fprintf(&out, "\n%d of %d rules are proved.\n", proved, len(all))
	return out.Bytes()
}

func sectionOf(id string) string {
	parts := strings.Split(id, "-")
	return parts[1]
}

// TestRuleNumbersAreOneList: numbers are unique, have the one form, and their marks in test names are unique too.
func TestRuleNumbersAreOneList(t *testing.T) {
	rules, err := Requirements()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	seen := map[string]bool{}
	for _, r := range rules {
		if inComment.FindString(r.ID) != r.ID || inTest.FindString(r.Mark()) != r.Mark() {
			t.Errorf("%s has not the form of a rule number", r.ID)
		}
		if seen[r.ID] || seen[r.Mark()] {
			t.Errorf("%s stands twice", r.ID)
		}
		seen[r.ID], seen[r.Mark()] = true, true
		count[r.Level]++
	}
	want := map[string]int{"MUST": 16, "MUST NOT": 17, "SHOULD": 13, "MAY": 11, "CLAIM": 21}
	for level, n := range want {
		if count[level] != n {
			t.Errorf("%d rules are %s; the sections have %d", count[level], level, n)
		}
	}
}
