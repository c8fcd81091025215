package jsondoc

import (
	"strconv"
	"strings"
)

// Get is the value of a member; nil when n is no object or has none of that name.
func (n *Node) Get(key string) *Node {
	if n == nil || n.Kind != Object {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Key == key {
			return n.Members[i].Value
		}
	}
	return nil
}

// Has says whether n is an object with a member of that name.
func (n *Node) Has(key string) bool { return n.Get(key) != nil }

// Lookup finds the value at an RFC 6901 pointer; nil when there is none or the pointer has no valid form.
func (n *Node) Lookup(pointer string) *Node {
	tokens, ok := Tokens(pointer)
	if !ok {
		return nil
	}
	for _, t := range tokens {
		if n = n.Child(t); n == nil {
			return nil
		}
	}
	return n
}

// Child is the member or item that one token of a pointer names.
func (n *Node) Child(token string) *Node {
	if n == nil || n.Kind != Array {
		return n.Get(token)
	}
	if i := Index(token); i >= 0 && i < len(n.Items) {
		return n.Items[i]
	}
	return nil
}

// Index reads a token as an array index; -1 when it is none. Leading zeros are not allowed.
func Index(token string) int {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || strconv.Itoa(i) != token {
		return -1
	}
	return i
}

// Pointer joins tokens to an RFC 6901 pointer.
func Pointer(tokens ...string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(escape(t))
	}
	return b.String()
}

// Below is the pointer of a child of the value at pointer.
func Below(pointer, token string) string { return pointer + "/" + escape(token) }

func escape(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// Tokens splits a pointer; false when it has no valid form: it starts with / or is empty, and every ~ is
// followed by 0 or 1.
func Tokens(pointer string) ([]string, bool) {
	if pointer == "" {
		return nil, true
	}
	if pointer[0] != '/' {
		return nil, false
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		if strings.IndexByte(t, '~') < 0 {
			continue
		}
		plain := strings.ReplaceAll(strings.ReplaceAll(t, "~1", ""), "~0", "")
		if strings.Contains(plain, "~") {
			return nil, false
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, true
}
