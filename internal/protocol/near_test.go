package protocol

import (
	"strings"
	"testing"
)

func TestNearestIsAtMostTwoEditsAway(t *testing.T) {
	for word, want := range map[string]string{"instal": "install", "isntall": "install", "exec": "exec", "exce": "exec", "zzz": "", strings.Repeat("x", 1000): ""} {
		if got := Nearest(word, []string{"install", "exec", "list"}); got != want {
			t.Errorf("%.20s: %q, want %q", word, got, want)
		}
	}
	for _, d := range []struct {
		a, b string
		n    int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}} {
		if Distance(d.a, d.b) != d.n || Distance(d.b, d.a) != d.n {
			t.Errorf("%+v: %d", d, Distance(d.a, d.b))
		}
	}
}
