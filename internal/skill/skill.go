// Package skill reads HARNESS.md (§5): the skill of a pack, the text that teaches a person or a model its
// commands. It is CommonMark with optional YAML front matter, an H1, and below it the lead, which alone may
// stand in a system prompt (§5.3).
//
// Nouns: Skill (title and lead), Names (the commands that the text may teach), Row (one command in the
// table of the copy). Check raises the skill.* findings of lint: credentials, paths of one machine and
// commands that are not declared (§5.2). Copy makes the Agent Skill that activate stores (§5.4).
//
// The blocks are found by a small scanner of our own, because a skill is read by every lint and by no exec,
// and a Markdown library would be paid at every start. It is pure: bytes in, values and issues out.
package skill

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"hcpx/internal/order"
	"hcpx/internal/protocol"
	"hcpx/internal/yamldoc"
)

// File is the skill's name in a pack.
const File = "HARNESS.md"

// MaxLead is the most code points that a lead may have (§5.1).
const MaxLead = 300

// maxFront is the most bytes of front matter that are read.
const maxFront = 8 << 10

// Skill is HARNESS.md as read.
type Skill struct {
	Title       string // the first H1
	Lead        string // the first paragraph below it, on one line
	LeadLine    int    // 1-based; 0 when there is no lead
	Name        string // name in the front matter, "" when absent
	Description string // description in the front matter, "" when absent

	src    string
	body   int // offset behind the front matter
	blocks []block
}

// Parse reads the skill and judges its form (§5.1). The Skill is never nil; what could not be read is "".
func Parse(src []byte) (*Skill, []protocol.Issue) {
	s := &Skill{src: string(src)}
	if at, message := badEncoding(src); message != "" {
		return s, s.issues([]finding{{code: "json.encoding", at: at, message: message}})
	}
	var found []finding
	front, at := frontMatter(s.src)
	s.body = at
	if front != "" {
		found = s.decode(front)
	}
	s.blocks = scan(s.src, s.body)
	return s, s.issues(append(found, s.lead()...))
}

// badEncoding finds a byte order mark or the first byte that is not UTF-8 (§2.1).
func badEncoding(src []byte) (int, string) {
	if bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
		return 0, "The file starts with a byte order mark; save it as UTF-8 without one."
	}
	if utf8.Valid(src) {
		return 0, ""
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size <= 1 {
			return at, "The file is not valid UTF-8 here."
		}
		at += size
	}
}

// frontMatter splits the YAML between two lines of "---" at the start of the file from the body. Without
// the second line there is no front matter.
func frontMatter(src string) (front string, body int) {
	end, at := lineEnd(src, 0)
	if strings.TrimRight(src[:end], " \t") != "---" {
		return "", 0
	}
	start := at
	for at < len(src) {
		end, next := lineEnd(src, at)
		if l := strings.TrimRight(src[at:end], " \t"); l == "---" || l == "..." {
			return src[start:at], next
		}
		at = next
	}
	return "", 0
}

// decode reads name and description; other members are the author's own.
func (s *Skill) decode(front string) []finding {
	root, err := yamldoc.Parse([]byte(front), maxFront)
	if err != nil {
		return []finding{{code: "skill.lead", message: "The front matter " + err.Error() + "."}}
	}
	var name, description bool
	s.Name, name = frontText(root, "name")
	s.Description, description = frontText(root, "description")
	if !name || !description || root != nil && !yamldoc.Mapping(root) {
		return []finding{{code: "skill.lead", message: "The front matter is not YAML with a text as name and description."}}
	}
	return nil
}

// frontText is a text of the front matter; one that is absent or empty is "".
func frontText(root yamldoc.Node, key string) (string, bool) {
	n := yamldoc.Member(root, key)
	if yamldoc.Null(n) {
		return "", true
	}
	return yamldoc.Scalar(n)
}

// lead finds the H1 and the first paragraph below it, before any other heading (§5.1).
func (s *Skill) lead() []finding {
	at := -1
	for i, b := range s.blocks {
		if b.kind == heading && b.level == 1 && b.top && strings.TrimSpace(b.text.s) != "" {
			at = i
			break
		}
	}
	if at < 0 {
		return []finding{{code: "skill.lead", at: s.body, message: "The skill has no first-level heading."}}
	}
	title := s.blocks[at].text
	s.Title = oneLine(title.s)
	for _, b := range s.blocks[at+1:] {
		if b.kind == heading {
			break
		}
		if b.kind != paragraph || !b.top {
			continue
		}
		start := b.text.source(0)
		s.Lead, s.LeadLine = oneLine(b.text.s), 1+strings.Count(s.src[:start], "\n")
		if n := utf8.RuneCountInString(s.Lead); n > MaxLead {
			return []finding{{code: "skill.lead", at: start,
				message: fmt.Sprintf("The lead has %d characters; at most %d are allowed.", n, MaxLead)}}
		}
		return nil
	}
	return []finding{{code: "skill.lead", at: title.source(0),
		message: "No paragraph stands below the first-level heading; it would be the lead."}}
}

// oneLine joins lines and collapses blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// finding is an issue before its place is known.
type finding struct {
	code    protocol.IssueCode
	at      int // byte offset
	message string
	hint    string
}

// issues gives the findings their lines and columns, in one pass over the text.
func (s *Skill) issues(found []finding) []protocol.Issue {
	order.By(found, func(a, b finding) int { return cmp.Compare(a.at, b.at) })
	var out []protocol.Issue
	line, column, at := 1, 1, 0
	for _, f := range found {
		for to := min(f.at, len(s.src)); at < to; {
			r, size := utf8.DecodeRuneInString(s.src[at:])
			at += size
			column++
			if r == '\n' {
				line, column = line+1, 1
			}
		}
		i := protocol.NewIssue(f.code, File, f.message)
		i.Line, i.Column, i.Hint = line, column, f.hint
		out = append(out, i)
	}
	return out
}
