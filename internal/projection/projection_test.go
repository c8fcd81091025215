package projection

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func parse(t testing.TB, src string) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(src), jsondoc.Limits{Bytes: 1 << 20})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return n
}

// packs are two as a Principal sees them: reads and writes, each land, a command without arguments.
func packs(t testing.TB) []Pack {
	return []Pack{
		{ID: "mail", Version: "1.0.0", Lead: `Reads "and" sends mail.`, Text: []byte("# Mail\n\nReads \"and\" sends mail.\n\n`hcpx exec mail mail.list`\n"), Commands: []Command{
			{Key: "mail.list", Summary: "List messages.", Operation: "read", Land: "personal",
				Args: parse(t, `{"type":"object","properties":{"limit":{"type":"integer","minimum":1,"default":9007199254740993},"like":{"type":"string","pattern":"^`+"```"+`"}},"additionalProperties":false}`)},
			{Key: "mail.send", Summary: "Send a message.", Operation: "write", Land: "personal", Confirm: true,
				Args: parse(t, `{"properties":{"to":{"type":"string"}},"required":["to"]}`)},
		}},
		{ID: "team-notes", Version: "2.0.0", Text: []byte("no heading"), Commands: []Command{
			{Key: "add", Summary: "Add a note.", Operation: "write", Land: "brain", Project: true},
		}},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func told(list []Tool) []byte {
	var b strings.Builder
	for _, t := range list {
		fmt.Fprintf(&b, "%s of %q\n  %s\n  read-only %v, destructive %v, idempotent %v\n  in  %s\n", t.Name, t.Pack, t.Description, t.ReadOnly, t.Destructive, t.Idempotent, t.Input.Append(nil))
		if t.Output != nil {
			fmt.Fprintf(&b, "  out %s\n", t.Output.Append(nil))
		}
	}
	return []byte(b.String())
}

// §12, HCP-12.6-1b: each projection is text of its inputs and nothing else; digests and bindings are no part of it.
func Test_12_2_ProjectionsAreGolden(t *testing.T) {
	all := packs(t)
	golden(t, "tools-single.txt", told(Tools(all, Single)))
	golden(t, "tools-commands.txt", told(Tools(all, Commands)))
	golden(t, "instructions-single.txt", []byte(Instructions(all, Single)))
	golden(t, "instructions-commands.txt", []byte(Instructions(all, Commands)))
	golden(t, "instructions-none.txt", []byte(Instructions(nil, Single)))
	golden(t, "mail.md", Skill(all[0]))
	golden(t, "team-notes.md", Skill(all[1]))
}

// HCP-12.2-1: activating a pack changes no tool of the single shape.
func Test_12_2_1_TheSingleShapeIsConstant(t *testing.T) {
	if diff := cmp.Diff(string(told(Tools(nil, Single))), string(told(Tools(packs(t), Single)))); diff != "" {
		t.Error(diff)
	}
}

// HCP-12.2-4, HCP-12.6-2, HCP-14.4-3: whatever the schema of a gated write looks like, its tool says so, in its words and in its arguments, and takes
// what the command takes.
func Test_12_6_AConfirmMarkIsNeverDropped(t *testing.T) {
	for _, args := range []string{"", `{}`, `{"type":"object"}`, `{"type":["object"]}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object"}}}`, `{"properties":{"a":{}},"additionalProperties":false}`} {
		c := Command{Key: "a", Operation: "write", Land: "local", Confirm: true}
		if args != "" {
			c.Args = parse(t, args)
		}
		tool := commandTool(Pack{ID: "p"}, c)
		if !strings.HasPrefix(tool.Description, "[write · local · confirm]") || tool.Input.Lookup("/properties/"+Confirm) == nil || tool.Input.Get("type").Text != "object" || tool.ReadOnly || !tool.Destructive {
			t.Errorf("%s: %+v %s", args, tool, tool.Input.Append(nil))
		}
		if c.Args != nil && c.Args.Lookup("/properties/"+Confirm) != nil {
			t.Error("the command's own schema was changed")
		}
	}
}

// §12.2: the first 512 characters of the instructions stand alone: they say how to call, and name packs or where to
// find them, however many there are; the whole grows with the leads alone.
func Test_12_2_TheStartOfTheInstructionsStandsAlone(t *testing.T) {
	for _, n := range []int{0, 1, 2, 5, 20, 30, 200} {
		for _, long := range []int{3, 20, 64} {
			var list []Pack
			for i := range n {
				id := fmt.Sprintf("%s%03d", strings.Repeat("p", max(1, long-3)), i)
				list = append(list, Pack{ID: id, Lead: strings.Repeat("é", 300)})
			}
			for _, shape := range []Shape{Single, Commands} {
				text := Instructions(list, shape)
				start, _, _ := strings.Cut(text, "\n")
				if c := utf8.RuneCountInString(start); c > standsAlone {
					t.Errorf("%d packs of %d: the start has %d characters: %s", n, long, c, start)
				}
				if !strings.Contains(start, "hcp__read_skill") || n > 0 && !strings.Contains(start, "Packs: ") || !strings.HasSuffix(start, ".") && n > 0 {
					t.Errorf("%d packs: %s", n, start)
				}
				if n == 20 && long == 20 && utf8.RuneCountInString(text) > 512+20*330 {
					t.Errorf("%d characters for 20 packs", utf8.RuneCountInString(text))
				}
			}
		}
	}
}

// §5.4: the front matter told as JSON is that of the text.
func Test_5_4_TheFrontMatterIsTheText(t *testing.T) {
	for _, p := range packs(t) {
		_, rest, _ := strings.Cut(string(Skill(p)), "---\n")
		front, _, _ := strings.Cut(rest, "---\n")
		var read map[string]any
		if err := yaml.Unmarshal([]byte(front), &read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(read, Front(p).Any()); diff != "" {
			t.Error(diff)
		}
	}
}

// HCP-12.2-2b: a tool's name is the manifest's own.
func Test_12_2_2_NamesAreTheManifests(t *testing.T) {
	for _, tool := range Tools(packs(t), Commands)[1:] {
		if want := manifest.ToolName(tool.Pack, map[string]string{"mail__mail_list": "mail.list", "mail__mail_send": "mail.send", "team-notes__add": "add"}[tool.Name]); tool.Name != want {
			t.Error(tool.Name)
		}
	}
}
