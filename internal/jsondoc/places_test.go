package jsondoc

import (
	"strings"
	"testing"
)

// §14.2: an index says what Place says, at every offset, also within a character.
func Test_14_2_IndexSaysWhatPlaceSays(t *testing.T) {
	src := []byte(strings.Repeat("aä☃\n𝄞", 3000) + strings.Repeat("☃", 5000) + "\xff\xfe\n")
	x := NewPlaces(src)
	for offset := -1; offset <= len(src)+1; offset++ {
		line, column := Place(src, offset)
		if l, c := x.Place(offset); l != line || c != column {
			t.Fatalf("offset %d: %d:%d, want %d:%d", offset, l, c, line, column)
		}
	}
}
