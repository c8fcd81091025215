package skill

import (
	"regexp"
	"strings"
	"sync"
)

var (
	verbatimTag = lazy(`(?i)^<(script|pre|style|textarea)(?:[ \t>]|$)`)
	verbatimEnd = lazy(`(?i)</(?:script|pre|style|textarea)>`)
	blockTag    = lazy(`(?i)^</?([a-z][a-z0-9]*)(?:[ \t]|/?>|$)`)
	anyTag      = lazy(`^(?:` + openTag + `|` + closeTag + `)`)
	autolink    = lazy(`^<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\x00-\x20<>]*|[\w.!#$%&'*+/=?^{|}~-]+@[\w.-]+)>`)
)

const (
	attribute = `[ \t\n]+[A-Za-z_:][A-Za-z0-9_.:-]*(?:[ \t\n]*=[ \t\n]*(?:[^ \t\n"'=<>` + "`" + `]+|'[^']*'|"[^"]*"))?`
	openTag   = `<[A-Za-z][A-Za-z0-9-]*(?:` + attribute + `)*[ \t\n]*/?>`
	closeTag  = `</[A-Za-z][A-Za-z0-9-]*[ \t\n]*>`
)

// blockTags are the tags that begin an HTML block by their name.
const blockTags = ` address article aside base basefont blockquote body caption center col colgroup dd details dialog
 dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend
 li link main menu menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th thead
 title tr track ul `

// lazy compiles on first use: a program that reads no skill pays for no expression.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// opensHTML says whether an HTML block begins with the line, and the mark that ends it; "" = a blank line.
func opensHTML(s string, inParagraph bool) (ok bool, closer string) {
	if s == "" || s[0] != '<' {
		return false, ""
	}
	if m := verbatimTag().FindStringSubmatch(s); m != nil {
		return true, "</" + m[1] + ">"
	}
	for _, pair := range [][2]string{{"<!--", "-->"}, {"<?", "?>"}, {"<![CDATA[", "]]>"}} {
		if strings.HasPrefix(s, pair[0]) {
			return true, pair[1]
		}
	}
	if len(s) > 2 && s[1] == '!' && (s[2]|0x20) >= 'a' && (s[2]|0x20) <= 'z' {
		return true, ">"
	}
	if m := blockTag().FindStringSubmatch(s); m != nil && named(m[1]) {
		return true, ""
	}
	if inParagraph {
		return false, ""
	}
	end := anyTag().FindString(s)
	return end != "" && strings.TrimSpace(s[len(end):]) == "", ""
}

// endsHTML says whether the line holds the mark. Any of the verbatim tags ends each of them.
func endsHTML(s, closer string) bool {
	if strings.HasPrefix(closer, "</") {
		return verbatimEnd().MatchString(s)
	}
	return closer != "" && strings.Contains(s, closer)
}

// named says whether the tag is one of blockTags.
func named(tag string) bool {
	for name := range strings.FieldsSeq(blockTags) {
		if strings.EqualFold(name, tag) {
			return true
		}
	}
	return false
}
