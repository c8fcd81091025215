package skill

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

var rows = []Row{
	{Verb: "departures", Operation: "read", Land: "personal", Summary: "Show | departures"},
	{Verb: "trip.book", Operation: "write", Land: "personal", Confirm: true, Summary: "Book a trip"},
}

func Test_5_4_CopyGolden(t *testing.T) {
	for _, name := range []string{"plain", "front", "open"} {
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile("testdata/copy/" + name + ".md")
			if err != nil {
				t.Fatal(err)
			}
			golden := "testdata/copy/" + name + ".golden"
			got := Copy("transit", src, rows)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Error(diff)
			}
			if !bytes.Equal(got, Copy("transit", src, rows)) {
				t.Error("two copies of the same pack differ")
			}
		})
	}
}

func Test_5_4_CopyWithoutCommands(t *testing.T) {
	got := string(Copy("herald", []byte("# Herald\n\nAnnounces.\n"), nil))
	if !strings.Contains(got, "name: herald\n") || strings.Contains(got, "| command |") {
		t.Error(got)
	}
}

// agentSkill checks the properties of §5.4 on any input.
func agentSkill(t *testing.T, id string, src []byte) {
	t.Helper()
	s, issues := Parse(src)
	if len(issues) > 0 {
		return
	}
	front, body := frontMatter(string(Copy(id, src, rows)))
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(front), &fields); err != nil {
		t.Fatalf("front matter %q: %v", front, err)
	}
	if want := map[string]any{"name": id, "description": s.Lead}; !cmp.Equal(fields, want) {
		t.Fatalf("front matter %q is %v, not %v", front, fields, want)
	}
	again, _ := Parse(Copy(id, src, rows))
	if body == 0 || again.Lead != s.Lead {
		t.Fatalf("the lead %q became %q", s.Lead, again.Lead)
	}
	last := again.blocks[len(again.blocks)-1]
	if last.kind != paragraph || !last.top || !strings.HasPrefix(last.text.s, "Call a command") {
		t.Fatalf("the text swallows the table: %+v", last)
	}
}

func Test_5_4_CopyIsAValidAgentSkill(t *testing.T) {
	for _, lead := range []string{"Plain.", "Key: value # no comment", "- dash", "\"quoted\"", "it's", "[a](b)", "*star*", "yes", "null", "1.5", "2026-11-30", "ends:",
		"{x}", "&a", "!tag", "%x", "@x", "`code`", "tab\there", "emoji 🚆", "a\u2028b", "\\n", "trailing \\", "~", "a\u00a0b", "=", "<<"} {
		agentSkill(t, "transit", []byte("# T\n\n"+lead+"\n"))
	}
	for _, id := range []string{"null", "true", "yes", "on", "y", "transit"} {
		agentSkill(t, id, []byte("# T\n\nLead\n"))
	}
}

func FuzzCopy(f *testing.F) {
	f.Add("# T\n\nLead: \"x\"\n\n```\nopen")
	f.Add("---\nname: x\n---\n# T\nLead\n<!--")
	f.Fuzz(func(t *testing.T, src string) { agentSkill(t, "transit", []byte(src)) })
}

func FuzzCheck(f *testing.F) {
	f.Add("# T\n\nLead `hcpx exec transit nope`\n\n> - ```\n>   transit__x\n")
	f.Add("token: q7Rk2Zp9Wm4Xc8Vb /home/ada C:\\Users\\ada \\\\a1\\b")
	f.Add("---\na: &a [*a]\n---\n\t1) x\n\t\t~~~\n")
	f.Fuzz(func(t *testing.T, src string) {
		for _, i := range Check([]byte(src), transit) {
			lines := strings.Split(src, "\n")
			if i.Line < 1 || i.Line > len(lines) || i.Column < 1 || i.Column > 1+len([]rune(lines[i.Line-1])) {
				t.Errorf("%s at %d:%d lies outside %q", i.Code, i.Line, i.Column, src)
			}
		}
		for _, b := range scan(src, 0) {
			for n, l := range b.text.lines {
				if l.src < 0 || l.src > len(src) || n > 0 && l.src <= b.text.lines[n-1].src {
					t.Errorf("line %d of a block stands at %d of %q", n, l.src, src)
				}
			}
		}
	})
}

// A skill may have 1 MiB; none of its shapes may cost more than linear time.
func BenchmarkCheck(b *testing.B) {
	for name, piece := range map[string]string{"words": "word and more `code` here.\n", "ticks": "`a``b```c ", "tags": "<a <b ", "quotes": "> > > x\n", "secrets": "token: q7Rk2Zp9Wm4Xc8Vb\n", "paths": "/home/ada "} {
		b.Run(name, func(b *testing.B) {
			src := taught(strings.Repeat(piece, (1<<18)/len(piece)))
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				Check(src, transit)
			}
		})
	}
}
