package protocol

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files anew")

// golden holds a generated page against the tables it is made from.
func golden(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not what the table says; run ./dev gen", path)
	}
}

func TestGeneratedErrorPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Error codes\n\nMade from `internal/protocol/codes.go` by `./dev gen`. Exit codes: 64 usage, 3 refused, 1 failed, 70 internal.\n\n")
	b.WriteString("| code | step | class | exit | section | HTTP | meaning |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range Codes {
		steps := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(c.Steps)), ", "), "[]")
		if len(c.Steps) == 10 {
			steps = "any"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %s | %d | %s |\n", c.Code, steps, c.Class, c.Code.Exit(), c.Section, c.HTTP, c.Meaning)
	}
	golden(t, "../../docs/errors.md", b.String())
}

func TestGeneratedLintPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Lint codes\n\nMade from `internal/protocol/issue.go` by `./dev gen`. An error fails lint; a warning changes nothing.\n\n")
	b.WriteString("| code | severity | section | meaning |\n| --- | --- | --- | --- |\n")
	for _, c := range IssueCodes {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Code, c.Severity, c.Section, c.Meaning)
	}
	golden(t, "../../docs/lint.md", b.String())
}

// §6.10: every code has one row, a class, and so an exit code; an unknown one fails closed.
func Test_6_10_EveryCodeHasOneRow(t *testing.T) {
	seen := map[Code]bool{}
	for _, c := range Codes {
		if seen[c.Code] {
			t.Errorf("%s stands twice", c.Code)
		}
		seen[c.Code] = true
		if c.Meaning == "" || c.Section == "" || !slices.Contains([]Class{Usage, Refused, Failed, Internal}, c.Class) {
			t.Errorf("%s: the row is incomplete", c.Code)
		}
	}
	if exit := Code("never heard of").Exit(); exit != 70 {
		t.Errorf("an unknown code exits with %d, not 70", exit)
	}
}

// §6.10: refused at steps 2 to 8 is 3, run and failed is 1.
func Test_6_10_ExitFollowsFromTheStep(t *testing.T) {
	for _, c := range Codes {
		if len(c.Steps) != 1 {
			continue
		}
		switch step := c.Steps[0]; {
		case c.Class == Usage:
		case step >= 2 && step <= 8 && c.Code.Exit() != 3:
			t.Errorf("%s is refused at step %d and exits with %d", c.Code, step, c.Code.Exit())
		case step >= 9 && c.Code.Exit() != 1:
			t.Errorf("%s fails at step %d and exits with %d", c.Code, step, c.Code.Exit())
		}
	}
}

// §9.1: the form of a Principal.
func Test_9_1_PrincipalForm(t *testing.T) {
	for p, kind := range map[Principal]string{
		"human:ada": "human", "agent:claude-code": "agent", "service:ci@build.2": "service", "mothership:m_1": "mothership",
		"": "", "human:": "", "root:ada": "", "human:Ada": "", "human:.ada": "", "human:ada\n": "", "agent:a b": "",
		Principal("human:" + strings.Repeat("a", 64)): "human", Principal("human:" + strings.Repeat("a", 65)): "",
	} {
		if p.Kind() != kind || p.Valid() != (kind != "") {
			t.Errorf("%q: kind %q, want %q", p, p.Kind(), kind)
		}
	}
}

// §14.2: issues are sorted by dir, file, place and code.
func Test_14_2_IssuesAreSorted(t *testing.T) {
	issues := []Issue{{File: "b", Line: 1, Column: 1}, {File: "a", Line: 2, Column: 1}, {File: "a", Line: 1, Column: 2, Code: "z"},
		{File: "a", Line: 1, Column: 2, Code: "a"}, {Dir: "0", File: "z"}}
	SortIssues(issues)
	var order []string
	for _, i := range issues {
		order = append(order, fmt.Sprintf("%s%s%d%d%s", i.Dir, i.File, i.Line, i.Column, i.Code))
	}
	if got, want := strings.Join(order, " "), "a12a a12z a21 b11 0z00"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
}
