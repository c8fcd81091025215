package hcpx

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rooms is the import table: a package may import only what its row names (the standard library and
// modules apart). Rooms are listed from the words up; a row may name only rows above it, so the table has
// no cycle. A row without a package fails, so that the table is never stale.
var rooms = []struct {
	name string
	may  string
}{
	{"internal/order", ""},
	{"internal/protocol", "order"},
	{"internal/jsondoc", "order"},
	{"internal/yamldoc", "jsondoc"},

	{"examples", ""},
	{"internal/egress", ""},
	{"internal/procs", ""},
	{"internal/disk", ""},
	{"internal/stamp", "protocol"},
	{"internal/protect", "order"},
	{"internal/manifest", "order protocol egress jsondoc"},
	{"internal/policy", "protocol jsondoc"},
	{"internal/skill", "order protocol yamldoc"},
	{"internal/sandbox", "protocol egress stamp procs"},
	{"internal/sandbox/sandboxtest", "protocol sandbox"},
	{"internal/sandbox/redteamtest", ""},
	{"internal/audit", "order protocol jsondoc"},
	{"internal/settings", "protocol"},
	{"internal/places", "protocol"},
	{"internal/session", "protocol places"},
	{"internal/learn", "protocol egress procs"},
	{"internal/pack", "order protocol jsondoc manifest policy skill stamp"},
	{"internal/grant", "protocol jsondoc"},
	{"internal/vault", "protocol disk"},
	{"internal/vault/vaulttest", "protocol vault"},
	{"internal/binding", "protocol egress jsondoc manifest"},
	{"internal/binding/hubtest", "protocol jsondoc manifest binding"},
	{"internal/adapter", "protocol jsondoc manifest sandbox"},
	{"internal/adapter/wrap", "protocol egress jsondoc manifest sandbox adapter"},
	{"internal/adapter/openapi", "order protocol egress jsondoc yamldoc manifest adapter"},
	{"internal/adapter/composite", "order protocol jsondoc manifest policy adapter"},
	{"internal/adapter/composite/machinetest", "protocol jsondoc adapter/composite"},
	{"internal/jq", "protocol jsondoc adapter/composite"},
	{"internal/jq/worker", "protocol jsondoc sandbox adapter/composite"},
	{"internal/store", "protocol disk jsondoc pack grant stamp"},
	{"internal/store/storetest", "protocol pack grant store"},
	{"internal/approval", "order protocol jsondoc store"},
	{"internal/gate", "protocol places jsondoc stamp manifest policy pack grant binding sandbox adapter store"},
	{"internal/projection", "protocol jsondoc manifest skill"},
	{"internal/lint", "protocol protect jsondoc manifest policy skill pack adapter adapter/wrap adapter/composite adapter/openapi"},
	{"internal/imports", "order protocol egress jsondoc manifest skill grant lint"},
	{"internal/conformance", "order protocol jsondoc examples"},
	{"internal/pipeline", "order protocol protect jsondoc manifest policy pack grant binding sandbox adapter audit store approval gate"},
	{"internal/lifecycle", "order protocol places egress protect jsondoc stamp manifest policy skill pack lint grant binding sandbox adapter adapter/composite audit store settings session learn approval gate projection"},
	{"internal/app", "protocol places jsondoc stamp manifest policy pack grant binding sandbox adapter adapter/wrap adapter/composite adapter/openapi audit store settings session vault gate pipeline lifecycle lint examples"},
	{"internal/demogit", ""},
	{"internal/cli", "protocol jsondoc manifest adapter/composite jq/worker audit grant settings session approval lifecycle lint conformance app examples demogit"},
	{"internal/mcp", "protocol jsondoc manifest approval session lifecycle projection"},
	{"cmd/hcpx", "cli sandbox learn"},
	{"cmd/hcpxd", "protocol session imports cli sandbox learn jq jq/worker projection mcp"},
}

// room is one package as parsed.
type room struct {
	files   map[string]*ast.File
	fset    *token.FileSet
	imports map[string]string // import path → file that names it
}

func parseRooms(t *testing.T) map[string]*room {
	t.Helper()
	found := map[string]*room{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "testdata" || (strings.HasPrefix(n, ".") && n != ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		r := found[dir]
		if r == nil {
			r = &room{files: map[string]*ast.File{}, fset: token.NewFileSet(), imports: map[string]string{}}
			found[dir] = r
		}
		f, err := parser.ParseFile(r.fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		r.files[path] = f
		for _, spec := range f.Imports {
			r.imports[strings.Trim(spec.Path.Value, `"`)] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestImportTable(t *testing.T) {
	found := parseRooms(t)
	var known []string
	for _, row := range rooms {
		r := found[row.name]
		if r == nil {
			t.Errorf("the row %s has no package", row.name)
			continue
		}
		for _, name := range strings.Fields(row.may) {
			full := "internal/" + name
			if name == "examples" {
				full = name
			}
			if !slices.Contains(known, full) {
				t.Errorf("the row %s names %s, which does not stand above it", row.name, full)
			}
		}
		for path, file := range r.imports {
			inner, own := strings.CutPrefix(path, "hcpx/")
			if !own {
				continue
			}
			if !slices.Contains(strings.Fields(row.may), strings.TrimPrefix(inner, "internal/")) {
				t.Errorf("%s imports %s, which its row does not allow", file, inner)
			}
		}
		known = append(known, row.name)
	}
	for name := range found {
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "bench") && name != "." {
			t.Errorf("the package %s has no row", name)
		}
	}
}

// TestRunsNeverMeet is HCP-14.3-7's half that can be seen in the imports: nothing of the execute path
// reaches Sense, and nothing of Sense reaches the execute path (§7.2).
func TestRunsNeverMeet(t *testing.T) {
	found := parseRooms(t)
	reach := func(from string) map[string]bool {
		seen := map[string]bool{}
		var walk func(string)
		walk = func(name string) {
			if seen[name] || found[name] == nil {
				return
			}
			seen[name] = true
			for path := range found[name].imports {
				if inner, own := strings.CutPrefix(path, "hcpx/"); own {
					walk(inner)
				}
			}
		}
		walk(from)
		return seen
	}
	for _, from := range []string{"internal/pipeline", "internal/adapter/wrap", "internal/adapter/composite", "internal/adapter/openapi"} {
		for name := range reach(from) {
			if strings.HasPrefix(name, "internal/sense") {
				t.Errorf("%s reaches %s", from, name)
			}
		}
	}
	if reach("internal/pipeline")["internal/lifecycle"] || reach("internal/lifecycle")["internal/pipeline"] {
		t.Error("pipeline and lifecycle reach each other")
	}
}

// TestPackageDocs: each room's doc opens with what it is and names its section.
func TestPackageDocs(t *testing.T) {
	section := regexp.MustCompile(`§\d`)
	for name, r := range parseRooms(t) {
		if !strings.HasPrefix(name, "internal/") {
			continue
		}
		var doc string
		for _, f := range r.files {
			if f.Doc != nil {
				doc += f.Doc.Text()
			}
		}
		if !strings.HasPrefix(doc, "Package ") || !section.MatchString(doc) {
			t.Errorf("%s: the package comment names no section", name)
		}
	}
}

// forbidden are calls and imports with the reason and the rooms where they may stand.
var forbidden = []struct{ call, reason, allowed string }{
	{"context.WithValue", "identity and domain data are parameters", ""},
	{"os.Exit", "only main ends the process", "cmd/hcpx cmd/hcpxd"},
	{"slices.SortFunc", "compiled anew for each type: internal/order", ""},
	{"slices.SortStableFunc", "compiled anew for each type: internal/order", ""},
	{"fmt.Print", "output goes through the streams of a face", ""},
	{"fmt.Println", "output goes through the streams of a face", ""},
	{"fmt.Printf", "output goes through the streams of a face", ""},
	{"time.Now", "the clock comes in", "internal/app internal/cli internal/sandbox cmd/hcpx"},
	{"os.Getenv", "the environment comes in", "internal/app internal/cli cmd/hcpx"},
	{"exec.Command", "programs start in the sandbox only", "internal/sandbox"},
	{"exec.CommandContext", "programs start in the sandbox only", "internal/sandbox internal/demogit"}, // the demo's server is git itself
}

// TestForbiddenCalls: among others, only the sandbox starts programs, so that no host's face does (HCP-12.2-5b).
func TestForbiddenCalls(t *testing.T) {
	for name, r := range parseRooms(t) {
		suite := strings.HasSuffix(name, "test") // runs in test programs alone
		if suite || !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "cmd/") {
			continue
		}
		for path, f := range r.files {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Name.Name == "init" && n.Recv == nil {
						t.Errorf("%s: no init: start-up is paid by every exec", path)
					}
				case *ast.SelectorExpr:
					x, ok := n.X.(*ast.Ident)
					if !ok {
						return true
					}
					for _, rule := range forbidden {
						if rule.call == x.Name+"."+n.Sel.Name && !slices.Contains(strings.Fields(rule.allowed), name) {
							t.Errorf("%s: %s: %s", r.fset.Position(n.Pos()), rule.call, rule.reason)
						}
					}
				}
				return true
			})
		}
	}
}

// The sizes that keep a room readable; what passes them is named here with its reason.
const (
	maxFunction = 80
	maxFile     = 700
)

var longByDesign = map[string]string{
	"internal/sandbox/syscalls.go:syscallTable": "one row per system call: a table, not a way",
}

func TestSizes(t *testing.T) {
	for name, r := range parseRooms(t) {
		if !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "cmd/") {
			continue
		}
		for path, f := range r.files {
			if lines := r.fset.Position(f.End()).Line; lines > maxFile {
				t.Errorf("%s has %d lines, more than %d", path, lines, maxFile)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				at := fmt.Sprintf("%s:%s", path, fn.Name.Name)
				if lines := r.fset.Position(fn.End()).Line - r.fset.Position(fn.Pos()).Line + 1; lines > maxFunction && longByDesign[at] == "" {
					t.Errorf("%s has %d lines, more than %d", at, lines, maxFunction)
				}
			}
		}
	}
}
