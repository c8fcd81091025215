// Package jsondoc reads JSON with places: every value and key keeps its byte offset, numbers keep their
// exact text, duplicate keys are found. It is the one JSON reader of files and envelopes (§2.1, §6.1),
// and its Node is the value in which arguments and results travel, so that no number is rounded (§6.5).
package jsondoc

// Kind is the type of a JSON value.
type Kind uint8

// The six kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Node is one JSON value. A Node is not changed after it was made; functions that change return a new one.
type Node struct {
	Kind    Kind
	Offset  int      // byte offset of the value in its source; 0 when made by a program
	Text    string   // String: the decoded text; Number: the literal; Bool: "true" or "false"
	Items   []*Node  // Array
	Members []Member // Object, in source order
}

// Member is one member of an object, with the offset of its key.
type Member struct {
	Key    string
	Offset int
	Value  *Node
}
