package skill

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	gmtext "github.com/yuin/goldmark/text"
)

// seen is what both readers say of one document: headings, paragraphs and code, in order.
func seen(src string) []string {
	var out []string
	for _, b := range scan(src, 0) {
		switch b.kind {
		case heading:
			out = append(out, fmt.Sprintf("h%d %s", b.level, squash(b.text.s)))
		case paragraph:
			out = append(out, "p "+squash(b.text.s))
		case fence, indented:
			out = append(out, "code "+squash(b.text.s))
		}
		if b.kind == heading || b.kind == paragraph {
			for _, c := range spans(b.text) {
				out = append(out, "span "+squash(c.text.s))
			}
		}
	}
	return out
}

// oracle reads the same with a library.
func oracle(src string) []string {
	var out []string
	source := []byte(src)
	lines := func(n ast.Node) string {
		var b strings.Builder
		for i := range n.Lines().Len() {
			s := n.Lines().At(i)
			b.Write(s.Value(source))
		}
		return squash(b.String())
	}
	doc := goldmark.DefaultParser().Parse(gmtext.NewReader(source))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			out = append(out, fmt.Sprintf("h%d %s", n.Level, lines(n)))
		case *ast.Paragraph, *ast.TextBlock:
			out = append(out, "p "+lines(n))
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			out = append(out, "code "+lines(n))
		case *ast.CodeSpan:
			var b strings.Builder
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				s := c.(*ast.Text).Segment
				b.Write(s.Value(source))
			}
			out = append(out, "span "+squash(b.String()))
		}
		return ast.WalkContinue, nil
	})
	return out
}

// squash compares what stands in a block, not its blanks.
func squash(s string) string { return strings.Join(strings.Fields(s), " ") }

func Test_5_1_BlocksAreReadAsALibraryReadsThem(t *testing.T) {
	files, err := filepath.Glob("testdata/blocks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range strings.Split(string(src), "\n%%%%\n") {
			if diff := cmp.Diff(oracle(doc), seen(doc)); diff != "" {
				t.Errorf("%s, document %d:\n%s\n(-library +ours)\n%s", f, i+1, doc, diff)
			}
		}
	}
}

// The pieces of generated documents: everything that begins, ends or interrupts a block.
var pieces = []string{
	"# Title", "## Sub ##", "word", "other `code` word", "two ``a ` b`` spans", "\\`no span`", "```", "```sh", "~~~~", "---", "===",
	"- item", "* item", "1. first", "2. second", "> quote", ">", "-", "    indented", "  two", "\tTab", "", "", "<!-- note -->", "<!--", "-->",
	"<div>", "</div>", "* * *", "hcpx exec a b.c", "`open", "close`", "<a href=\"`\">`", "- - nested", "> - both", "   three",
}

// document draws lines at random, some of them indented to stand in a container.
func document(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(9) {
		b.WriteString([]string{"", "", "", "", "  ", "> ", "   "}[r.IntN(7)])
		b.WriteString(pieces[r.IntN(len(pieces))])
		b.WriteByte('\n')
	}
	return b.String()
}

func Test_5_1_GeneratedBlocksAreReadAsALibraryReadsThem(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	differ, total := 0, 4000
	for range total {
		doc := document(r)
		if diff := cmp.Diff(oracle(doc), seen(doc)); diff != "" {
			differ++
			if differ <= 5 {
				t.Logf("%s\n(-library +ours)\n%s", doc, diff)
			}
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d documents are read differently", differ, total)
	}
}
