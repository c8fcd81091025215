package yamldoc

import (
	"strings"
	"testing"
)

func Test_14_2_DeepAndLargeDocumentsAreRefusedUnread(t *testing.T) {
	for name, src := range map[string]string{
		"sequences on one line": strings.Repeat("- ", 4000) + "x",
		"keys on one line":      strings.Repeat("? ", 4000) + "x",
		"brackets":              strings.Repeat("[", 4000),
		"braces over lines":     strings.Repeat("{a:\n", 4000),
		"large":                 "a: " + strings.Repeat("x", 9000),
	} {
		if n, err := Parse([]byte(src), 8<<10); err == nil {
			t.Errorf("%s: read as %v", name, n.Type())
		}
	}
}

func Test_5_1_NoAliasIsFollowed(t *testing.T) {
	root, err := Parse([]byte("a: &a text\nb: *a\n"), 100)
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := Scalar(Member(root, "a")); !ok || text != "text" {
		t.Errorf("a is %q, %v", text, ok)
	}
	if text, ok := Scalar(Member(root, "b")); ok {
		t.Errorf("the alias was followed to %q", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a: 1\n")
	f.Add("- - ? x\n&a [*a]")
	f.Fuzz(func(t *testing.T, src string) {
		root, err := Parse([]byte(src), 1<<10)
		if err != nil && root != nil {
			t.Error("both a node and an error")
		}
		Scalar(Member(root, "a"))
	})
}
