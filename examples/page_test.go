package examples_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/examples"
)

// declared is what docs/packs.md tells of a pack.
type declared struct {
	Summary string `json:"summary"`
	Adapter string `json:"adapter"`
	Wrap    struct {
		Bin     string          `json:"bin"`
		Uses    []string        `json:"uses"`
		Network json.RawMessage `json:"network"`
	} `json:"wrap"`
	OpenAPI struct {
		Server string `json:"server"`
	} `json:"openapi"`
	Binding struct {
		Mode   string `json:"mode"`
		Source struct {
			Kind string `json:"kind"`
		} `json:"source"`
	} `json:"binding"`
	Verbs map[string]struct {
		Steps []struct {
			Pack string `json:"pack"`
		} `json:"steps"`
	} `json:"verbs"`
}

type entry struct {
	Operation string `json:"operation"`
	Preview   string `json:"preview"`
	Confirm   any    `json:"confirm"`
}

// row is the pack's line of the table.
func row(t *testing.T, id string) string {
	t.Helper()
	tree, err := examples.Pack(id)
	if err != nil {
		t.Fatal(err)
	}
	var m declared
	var p struct {
		Verbs map[string]entry `json:"verbs"`
	}
	for name, into := range map[string]any{"surface.json": &m, "policy.json": &p} {
		src, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(src, into); err != nil {
			t.Fatal(err)
		}
	}
	reads, writes, asks := []string{}, []string{}, []string{}
	for _, verb := range slices.Sorted(maps.Keys(p.Verbs)) {
		switch e := p.Verbs[verb]; {
		case e.Operation == "read":
			reads = append(reads, "`"+verb+"`")
		case e.Confirm == nil:
			writes = append(writes, "`"+verb+"`")
		case e.Preview != "":
			asks = append(asks, fmt.Sprintf("`%s` (shows `%s`)", verb, e.Preview))
		default:
			asks = append(asks, "`"+verb+"`")
		}
	}
	return fmt.Sprintf("| [%s](../examples/packs/%s/HARNESS.md) | %s | %s | %s | %s | %s | %s | %s |\n", id, id, m.Summary, m.runs(), m.network(t),
		m.credential(), listed(reads), listed(writes), listed(asks))
}

// runs are the programs beside the pack's own, or the packs that a composite calls.
func (m declared) runs() string {
	var names []string
	for _, name := range append([]string{m.Wrap.Bin}, m.Wrap.Uses...) {
		if name != "" && !strings.HasPrefix(name, "./") {
			names = append(names, "`"+name+"`")
		}
	}
	for _, v := range m.Verbs {
		for _, s := range v.Steps {
			if name := "pack `" + s.Pack + "`"; s.Pack != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if m.Adapter == "composite" {
		slices.Sort(names)
	}
	return listed(names)
}

func (m declared) network(t *testing.T) string {
	t.Helper()
	var hosts struct {
		Hosts    []string `json:"hosts"`
		Operator bool     `json:"operator_hosts"`
	}
	switch {
	case m.OpenAPI.Server != "":
		return "`" + m.OpenAPI.Server + "`"
	case len(m.Wrap.Network) == 0 || m.Wrap.Network[0] == '"':
		return strings.Trim(string(m.Wrap.Network), `"`)
	}
	if err := json.Unmarshal(m.Wrap.Network, &hosts); err != nil {
		t.Fatal(err)
	}
	if hosts.Operator {
		hosts.Hosts = append(hosts.Hosts, "operator")
	}
	return strings.Join(hosts.Hosts, ", ")
}

func (m declared) credential() string {
	switch m.Binding.Source.Kind {
	case "basic":
		return "name and password"
	case "":
		return ""
	default:
		return m.Binding.Source.Kind
	}
}

func listed(names []string) string { return strings.Join(names, ", ") }

// TestThePageTellsThePacks holds the table of docs/packs.md against the packs; -update rewrites it.
func TestThePageTellsThePacks(t *testing.T) {
	const begin, end = "<!-- made by go test ./examples -update -->\n", "<!-- end -->"
	page := filepath.Join("..", "docs", "packs.md")
	src, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(src), begin)
	table, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("docs/packs.md has no place for the table")
	}
	want := "\n| pack | what | runs | network | credential | reads | writes | asks before |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, id := range examples.IDs() {
		want += row(t, id)
	}
	want += "\n"
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("docs/packs.md is not what the packs say; run go test ./examples -update\n%s", want)
	}
}
