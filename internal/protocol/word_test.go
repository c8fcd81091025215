package protocol

import "testing"

// A hint is the next command to type (§6.7): a path in it stays one word, and ~ stays ~.
func Test_6_7_AHintCanBeTyped(t *testing.T) {
	for in, want := range map[string]string{
		"git": "git", "./my-pack": "./my-pack", "a b": "'a b'", "~/.gitconfig": "'~/.gitconfig'", "it's": `'it'\''s'`, "": "''", "$(x)": "'$(x)'", "é": "'é'", "=x": "'=x'", "a=b": "a=b",
	} {
		if got := Word(in); got != want {
			t.Errorf("Word(%q) = %s, want %s", in, got, want)
		}
	}
}

// §6.7: operands that a stranger named are no options.
func Test_6_7_OperandsAreNoOptions(t *testing.T) {
	for want, in := range map[string][]string{
		"": nil, "git 'a b'": {"git", "a b"}, "-- -x": {"-x"}, "-- cat --dangerous": {"cat", "--dangerous"}, "''": {""}, "a-b": {"a-b"}, "-- '-$(x)'": {"-$(x)"},
	} {
		if got := Words(in...); got != want {
			t.Errorf("Words(%q) = %s, want %s", in, got, want)
		}
	}
}
