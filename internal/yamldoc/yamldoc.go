// Package yamldoc reads YAML that a stranger wrote: the front matter of a skill (§5.1) and a document of
// OpenAPI (§3.6). It walks the syntax tree, so no alias is followed and no document grows while it is read;
// size and nesting are bounded before the parser sees it, for some short documents cost it hours.
//
// Nouns: Node (of the syntax tree), Parse (one document, within its limit), Pairs, Member and Scalar (the
// looks at a mapping that its readers need). It is pure: bytes in, nodes and an error out.
package yamldoc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Node is a node of the syntax tree.
type Node = ast.Node

// maxNesting is how deep a document may nest.
const maxNesting = 1000

// Parse reads one document of at most limit bytes; nil is a document with nothing in it. The error is the
// end of a sentence that begins with the document's name.
func Parse(src []byte, limit int) (root Node, err error) {
	if len(src) > limit {
		return nil, fmt.Errorf("is YAML of more than %d bytes", limit)
	}
	if tooDeep(string(src)) {
		return nil, fmt.Errorf("nests deeper than %d", maxNesting)
	}
	// Lint answers whatever it is given (§14.2); the library is not known to.
	defer func() {
		if recover() != nil {
			root, err = nil, errors.New("is not YAML that can be read")
		}
	}()
	file, fault := parser.ParseBytes(src, 0)
	switch {
	case fault != nil || len(file.Docs) > 1:
		return nil, errors.New("is not one YAML document")
	case len(file.Docs) == 0:
		return nil, nil
	}
	return file.Docs[0].Body, nil
}

// tooDeep bounds what makes the parser slow: brackets within brackets, and sequences begun on one line.
func tooDeep(src string) bool {
	depth := 0
	for line := range strings.Lines(src) {
		if strings.Count(line, "- ")+strings.Count(line, "? ") > maxNesting {
			return true
		}
		depth += strings.Count(line, "[") + strings.Count(line, "{")
		if depth > maxNesting {
			return true
		}
		depth = max(depth-strings.Count(line, "]")-strings.Count(line, "}"), 0)
	}
	return false
}

// Pairs are the members of a mapping; none for anything else.
func Pairs(n Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	case *ast.AnchorNode:
		return Pairs(m.Value)
	}
	return nil
}

// Member is the value of a key; nil when it is absent.
func Member(n Node, key string) Node {
	for _, p := range Pairs(n) {
		if name, ok := Scalar(p.Key); ok && name == key {
			return p.Value
		}
	}
	return nil
}

// Mapping says whether n is a mapping.
func Mapping(n Node) bool {
	switch m := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	case *ast.AnchorNode:
		return Mapping(m.Value)
	}
	return false
}

// Null says whether n is absent or null.
func Null(n Node) bool { return n == nil || n.Type() == ast.NullType }

// Scalar is the text of a scalar as it is written: a version that reads as a number (3.1) too.
func Scalar(n Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		return s.Value.Value, true
	case *ast.FloatNode:
		return s.GetToken().Value, true
	case *ast.IntegerNode:
		return s.GetToken().Value, true
	case *ast.BoolNode:
		return s.GetToken().Value, true
	case *ast.AnchorNode:
		return Scalar(s.Value)
	}
	return "", false
}
