package sandbox

import (
	"strconv"
	"strings"
)

// maxDenied bounds how many refused things a run reports, and maxCounted how many it can count.
const (
	maxDenied  = 8
	maxCounted = 1024
)

// refusals are what was refused in a run. A destination that is tried again and again is one.
type refusals struct {
	kept []string
	seen map[string]bool
}

func (r *refusals) add(what string) {
	to := destination(what)
	if r.seen[to] || len(r.seen) > maxCounted {
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[to] = true
	if len(r.kept) < maxDenied {
		r.kept = append(r.kept, what)
	}
}

// report is the first of them, and how many there were beyond.
func (r *refusals) report() []string {
	more := len(r.seen) - len(r.kept)
	switch {
	case len(r.seen) > maxCounted:
		return append(r.kept, "and more than "+strconv.Itoa(more-1)+" more")
	case more > 0:
		return append(r.kept, "and "+strconv.Itoa(more)+" more")
	}
	return r.kept
}

// destination is where a refusal was to lead, without the way and the reason.
func destination(what string) string {
	for _, way := range []string{"connect udp ", "connect ", "name "} {
		if to, ok := strings.CutPrefix(what, way); ok {
			to, _, _ = strings.Cut(to, ": ")
			return to
		}
	}
	return what
}
