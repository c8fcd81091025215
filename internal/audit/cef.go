package audit

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// AppendCEF writes an entry as one line of ArcSight's Common Event Format, version 0, for collectors that take no
// JSON (§15.4). It shows less than the entry does, and no hash or MAC: who wants to check takes the lines themselves.
func AppendCEF(dst []byte, e Entry, version string) []byte {
	for _, s := range []string{"CEF:0", "hcpx", "hcpx", version, e.Kind, cefName(e.Kind)} {
		dst = append(appendCEFHeader(dst, s), '|')
	}
	c := cefWriter{b: strconv.AppendInt(dst, int64(cefSeverity(e)), 10), sep: '|'}
	if t, err := time.Parse(time.RFC3339Nano, e.Time); err == nil {
		c.text("rt", strconv.FormatInt(t.UnixMilli(), 10))
	}
	c.text("externalId", e.ID)
	c.text("suser", e.Principal)
	c.text("act", cefAct(e))
	c.text("cat", e.Operation)
	c.text("outcome", cefOutcome(e))
	c.text("reason", e.Code)
	c.text("msg", e.Message)
	c.custom("cn1", "seq", strconv.FormatUint(e.Seq, 10))
	if e.Exit != nil {
		c.custom("cn2", "exit", strconv.Itoa(*e.Exit))
	}
	if e.Step != 0 {
		c.custom("cn3", "step", strconv.Itoa(e.Step))
	}
	if e.DurationMS != 0 {
		c.custom("cfp1", "duration_ms", strconv.FormatFloat(e.DurationMS, 'f', -1, 64))
	}
	if len(e.Args) > 0 {
		c.custom("cs1", "args", string(e.Args))
	} else {
		c.custom("cs1", "detail", string(e.Detail))
	}
	c.custom("cs2", "session", e.Session)
	c.custom("cs3", "project", e.Project)
	c.custom("cs4", "parent", e.Parent)
	c.custom("cs5", "digest", e.Digest)
	c.custom("cs6", "grant", strings.Join(e.Grant, "; "))
	c.custom("flexString1", "confirm", e.Confirm)
	c.custom("flexString2", "plan_hash", e.PlanHash)
	return append(c.b, '\n')
}

// cefName is the sentence of a kind: the same for each entry of it, as collectors group by it.
func cefName(kind string) string {
	switch kind {
	case Intent:
		return "A command is about to run"
	case Outcome:
		return "A command has ended"
	case Denial:
		return "A request was refused"
	case Change:
		return "The store was changed"
	case Break:
		return "The audit was found broken"
	}
	return "An unknown entry"
}

func cefSeverity(e Entry) int {
	switch {
	case e.Kind == Break:
		return 9
	case e.Kind == Denial:
		return 6
	case e.Code != "":
		return 5
	case e.Kind == Change:
		return 4
	}
	return 3
}

func cefOutcome(e Entry) string {
	switch {
	case e.Kind == Denial || e.Code != "":
		return "failure"
	case e.Kind == Outcome || e.Kind == Change:
		return "success"
	}
	return ""
}

func cefAct(e Entry) string {
	if e.Verb != "" {
		return e.Pack + "/" + e.Verb
	}
	return strings.TrimSpace(cmp.Or(e.Act, e.Kind) + " " + e.Pack)
}

// cefWriter writes the extension: keys and values, in which nothing ends a value but the next key or the line's end.
type cefWriter struct {
	b   []byte
	sep byte
}

func (c *cefWriter) text(name, value string) {
	if value == "" {
		return
	}
	c.b = append(append(append(c.b, c.sep), name...), '=')
	c.b, c.sep = appendCEFValue(c.b, value), ' '
}

// custom is a field of the format's own, which says in a second one what it holds.
func (c *cefWriter) custom(name, label, value string) {
	if value != "" {
		c.text(name+"Label", label)
		c.text(name, value)
	}
}

// appendCEFHeader escapes backslash and bar; a header has no form for a line end or another control character, so
// they become spaces.
func appendCEFHeader(dst []byte, s string) []byte {
	return appendEscaped(dst, s, func(r rune) string {
		switch r {
		case '\\', '|':
			return `\` + string(r)
		}
		return ""
	})
}

// appendCEFValue escapes backslash and equals sign, and writes line ends as \n and \r; other control characters have
// no form and become spaces. A bar stands for itself.
func appendCEFValue(dst []byte, s string) []byte {
	return appendEscaped(dst, s, func(r rune) string {
		switch r {
		case '\\', '=':
			return `\` + string(r)
		case '\n':
			return `\n`
		case '\r':
			return `\r`
		}
		return ""
	})
}

// appendEscaped writes valid UTF-8 without control characters: those of Unicode's too that end a line for some readers.
func appendEscaped(dst []byte, s string, escape func(rune) string) []byte {
	for _, r := range s {
		if e := escape(r); e != "" {
			dst = append(dst, e...)
			continue
		}
		if r < ' ' || r >= 0x7f && r <= 0x9f || r == '\u2028' || r == '\u2029' {
			r = ' '
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
