package policy

import (
	"fmt"
	"slices"

	"hcpx/internal/protocol"
)

// Change is one thing in which a newer version differs (§13.3), in a sentence for a person. Widens says
// that it lets something through which the older version did not.
type Change struct {
	What   string `json:"what"`
	Widens bool   `json:"widens"`
}

// Compare says how the entries that two policies share differ (§13.3); nil when nothing does. A command
// that is new or gone is the manifest's to tell.
func Compare(old, next *Policy) []Change {
	if old == nil || next == nil {
		return nil
	}
	var out differences
	for _, was := range old.Verbs {
		if is := next.Verb(was.Key); is != nil {
			out.entry(was, is)
		}
	}
	for _, was := range old.Triggers {
		if is := next.Trigger(was.Key); is != nil {
			out.entry(was, is)
		}
	}
	return out
}

// differences are gathered in the order of the older policy.
type differences []Change

func (d *differences) entry(was, is *Entry) {
	say := func(widens bool, format string, args ...any) {
		*d = append(*d, Change{was.Key + ": " + fmt.Sprintf(format, args...), widens})
	}
	switch {
	case was.Operation == is.Operation:
	case is.Operation == protocol.Read:
		say(true, "a write is now declared a read, which fewer grants are needed for")
	default:
		say(true, "a read is now a write")
	}
	if was.Land != is.Land {
		say(true, "its land changes from %s to %s", was.Land, is.Land)
	}
	switch {
	case was.Confirm && !is.Confirm:
		say(true, "it no longer asks for confirmation")
	case !was.Confirm && is.Confirm:
		say(false, "it now asks for confirmation")
	case was.Message != is.Message:
		say(false, "it asks for confirmation in other words")
	}
	if was.Preview != "" && is.Preview != was.Preview {
		say(true, "its preview %s is gone", was.Preview)
	}
	for _, pointer := range was.Redact {
		if !slices.Contains(is.Redact, pointer) {
			say(true, "%q is no longer redacted from its result", pointer)
		}
	}
	for _, pointer := range is.Redact {
		if !slices.Contains(was.Redact, pointer) {
			say(false, "%q is now redacted from its result", pointer)
		}
	}
	for _, glob := range is.Protected {
		if !slices.Contains(was.Protected, glob) {
			say(true, "it may now change the protected names %q", glob)
		}
	}
}
