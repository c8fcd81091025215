package protect

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// §10.2: docs/spec prints the closed list, no name more and none less, under the words that plan shows.
func Test_10_2_PageHasTheList(t *testing.T) {
	src, err := os.ReadFile("../../docs/spec/10-isolation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(src), "> git: its configuration")
	list, _, end := strings.Cut(list, "\n- **By design.**")
	if !found || !end {
		t.Fatal("the list is not on the page")
	}
	list = "> git: its configuration" + list
	var page, code []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1) {
		page = append(page, m[1])
	}
	plain := strings.Join(strings.Fields(strings.ReplaceAll(list, "\n>", " ")), " ")
	for _, g := range List() {
		for _, name := range g.Names {
			if slices.Contains(g.Dirs, name) {
				name += "/"
			}
			code = append(code, name)
		}
		if !strings.Contains(plain, "> "+g.Why+":") && !strings.Contains(plain, " "+g.Why+":") {
			t.Errorf("the page has no part %q", g.Why)
		}
	}
	slices.Sort(page)
	slices.Sort(code)
	if !slices.Equal(page, code) {
		t.Errorf("the page has\n%v\nthe code\n%v", page, code)
	}
}
