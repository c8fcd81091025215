package protocol

import "testing"

// A hint is the next command to type (§6.7): a path in it stays one word, and ~ stays ~.
func Test_6_7_AHintCanBeTyped(t *testing.T) {
	for in, want := range map[string]string{
		"git": "git", "./my-pack": "./my-pack", "a b": "'a b'", "~/.gitconfig": "'~/.gitconfig'", "it's": `'it'\''s'`, "": "''", "$(x)": "'$(x)'", "é": "'é'",
	} {
		if got := Word(in); got != want {
			t.Errorf("Word(%q) = %s, want %s", in, got, want)
		}
	}
}
