package cli

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
)

// pictureFile is what the README shows: the second half of the demo, drawn from what it said.
const pictureFile = "../../docs/demo.svg"

// firstDrawn is the step that the picture begins with: the agent comes in.
const firstDrawn = "The agent reads a README that asks it to leak"

// pictured is the script command that holds the picture against the demo's last answer on stdout, or draws it anew with -update.
func (at pictures) pictured(ts *testscript.TestScript, _ bool, _ []string) {
	var v demoView
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	drawn := draw(v)
	if *update {
		ts.Check(os.WriteFile(at.path, drawn, 0o644))
		return
	}
	kept, err := os.ReadFile(at.path)
	ts.Check(err)
	if string(kept) != string(drawn) {
		ts.Fatalf("docs/demo.svg is not what the demo says; run ./dev gen\n%s", drawn)
	}
}

// pictures is where the picture lies; a script has another working directory than its test.
type pictures struct{ path string }

func newPictures() (pictures, error) {
	path, err := filepath.Abs(pictureFile)
	return pictures{path}, err
}

// scene is one line of the picture.
type scene struct{ class, text string }

// draw makes the picture: for each step its title, who typed what, and what came of it. What differs from run to run is replaced.
func draw(v demoView) []byte {
	var lines []scene
	begun := false
	for _, s := range v.Steps {
		if begun = begun || s.Title == firstDrawn; !begun {
			continue
		}
		who := "a"
		if strings.HasPrefix(s.Principal, "human:") {
			who = "h"
		}
		lines = append(lines, scene{"t", "# " + s.Title}, scene{who, s.Principal + " $ " + s.Command})
		lines = append(lines, came(s)...)
		lines = append(lines, scene{})
	}
	const width, row = 1060, 19
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="hcpx demo">
<style>text{font:13px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#d0d7de}.t{fill:#8b949e}.a{fill:#79c0ff}.h{fill:#d2a8ff}.r{fill:#ff7b72}.o{fill:#7ee787}</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, width, (len(lines)+1)*row)
	for i, l := range lines {
		if l.text != "" {
			fmt.Fprintf(&b, "<text class=%q x=\"16\" y=\"%d\">%s</text>\n", l.class, (i+1)*row+6, html.EscapeString(cropped(steady(l.text))))
		}
	}
	return []byte(b.String() + "</svg>\n")
}

// came is what a step answered, in one or two lines.
func came(s demoDone) []scene {
	var a struct {
		OK     bool
		Result json.RawMessage
		State  string
		Error  *struct {
			Code, Message string
			Step          int
			Details       struct {
				Denied []string
				Tail   string `json:"stderr_tail"`
			}
		}
		Preview struct {
			Result struct {
				URL     string
				Commits []struct{ Subject string }
			}
		}
		Connected *bool
		Entries   int
	}
	if json.Unmarshal(s.Answer, &a) != nil {
		return []scene{{"r", "?"}}
	}
	switch {
	case a.Error != nil:
		lines := []scene{{"r", fmt.Sprintf("refused at step %d: %s (exit %d)", a.Error.Step, a.Error.Code, s.Exit)}}
		switch d := a.Error.Details; {
		case len(d.Denied) > 0:
			return append(lines, scene{"r", strings.Join(d.Denied, ", ")})
		case d.Tail != "" && a.Error.Code == "command_failed":
			return append(lines, scene{"r", strings.TrimSpace(d.Tail)})
		}
		return append(lines, scene{"r", a.Error.Message})
	case len(a.Preview.Result.Commits) > 0:
		lines := []scene{{"o", "to " + a.Preview.Result.URL}}
		for _, c := range a.Preview.Result.Commits {
			lines = append(lines, scene{"o", "  " + c.Subject})
		}
		return lines
	case len(a.Result) > 0:
		return []scene{{"o", string(a.Result)}}
	case a.State != "":
		return []scene{{"o", a.State}}
	case a.Connected != nil:
		return []scene{{"o", map[bool]string{true: "connected", false: "not connected"}[*a.Connected]}}
	}
	return []scene{{"o", fmt.Sprintf("ok, %d entries", a.Entries)}}
}

// steady replaces what no two runs have alike: the place of the demo, the port, ids.
func steady(text string) string {
	for _, r := range []struct{ find, put string }{
		{`[^\s"=:]*/hcpx-demo-[0-9]+`, "~"}, {`127\.0\.0\.1:[0-9]+`, "git.local"}, {`\b[0-9A-HJKMNP-TV-Z]{26}\b`, "01M8R…"}, {`\b[0-9a-f]{40}\b`, "7ae6d32…"},
	} {
		text = regexp.MustCompile(r.find).ReplaceAllString(text, r.put)
	}
	return text
}

func cropped(text string) string {
	const most = 130
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
