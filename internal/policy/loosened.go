package policy

import (
	"fmt"
	"slices"

	"hcpx/internal/protocol"
)

// Loosened says in sentences what a newer policy lets through that the older one did not (§13.3); nil when
// nothing. A command that is new or gone loosens nothing: grants speak of it by its name.
func Loosened(old, new *Policy) []string {
	if old == nil || new == nil {
		return nil
	}
	var out []string
	for _, was := range old.Verbs {
		if is := new.Verb(was.Key); is != nil {
			out = append(out, loosenedEntry(was, is)...)
		}
	}
	for _, was := range old.Triggers {
		if is := new.Trigger(was.Key); is != nil {
			out = append(out, loosenedEntry(was, is)...)
		}
	}
	return out
}

func loosenedEntry(was, is *Entry) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, was.Key+": "+fmt.Sprintf(format, args...)) }
	if was.Operation != is.Operation {
		if is.Operation == protocol.Read {
			say("a write is now declared a read, which fewer grants are needed for")
		} else {
			say("a read is now a write")
		}
	}
	if was.Land != is.Land {
		say("its land changes from %s to %s", was.Land, is.Land)
	}
	if was.Confirm && !is.Confirm {
		say("it no longer asks for confirmation")
	}
	if was.Preview != "" && is.Preview != was.Preview {
		say("its preview %s is gone", was.Preview)
	}
	for _, pointer := range was.Redact {
		if !slices.Contains(is.Redact, pointer) {
			say("%q is no longer redacted from its result", pointer)
		}
	}
	for _, glob := range is.Protected {
		if !slices.Contains(was.Protected, glob) {
			say("it may now change the protected names %q", glob)
		}
	}
	return out
}
