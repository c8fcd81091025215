package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/sandbox/redteamtest"
)

// The list of escapes is whole: RT01 to RT38, each held by a row or by a test that exists, no row without its escape,
// no two rows of one name.
func Test_10_2_red_team_is_whole(t *testing.T) {
	s := redteamtest.New(t, short(t))
	s.Other = s.Victim
	rows, names := map[string]int{}, map[string]bool{}
	for _, row := range s.Rows() {
		rows[row.ID]++
		if names[row.Name] {
			t.Errorf("two rows are called %q", row.Name)
		}
		names[row.Name] = true
	}
	escapes := map[string]bool{}
	for _, e := range redteamtest.Escapes() {
		if escapes[e.ID] || e.Class == "" || strings.HasPrefix(e.ID, "RT") && e.Reference == "" {
			t.Errorf("%+v", e)
		}
		escapes[e.ID] = true
		if rows[e.ID] == 0 && len(e.Tests) == 0 {
			t.Errorf("nothing holds %s, %s", e.ID, e.Class)
		}
		for _, name := range e.Tests {
			stands(t, name)
		}
	}
	for n := range 38 {
		if id := fmt.Sprintf("RT%02d", n+1); !escapes[id] {
			t.Errorf("%s is not in the list", id)
		}
	}
	for id := range rows {
		if !escapes[id] {
			t.Errorf("the rows %s stand for no escape", id)
		}
	}
	t.Logf("%d escapes, %d rows", len(escapes), len(names))
}

// stands proves that a test exists, named room.Test.
func stands(t *testing.T, name string) {
	t.Helper()
	room, test, _ := strings.Cut(name, ".")
	dir := map[string]string{"sandbox": ".", "hcpx": "../../cmd/hcpx"}[room]
	if dir == "" {
		dir = "../" + room
	}
	files, err := filepath.Glob(dir + "/*_test.go")
	must(t, err)
	found := slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "\nfunc "+test+"(")
	})
	if !found {
		t.Errorf("there is no test %s", name)
	}
}
