package manifest

import (
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
)

// trigger reads one stimulus: it announces, it never polls (§7.1).
func (r reader) trigger(m jsondoc.Member, at jsondoc.Cursor) {
	t := &Trigger{Key: m.Key, KeyOffset: m.Offset, Node: m.Value}
	r.m.Triggers = append(r.m.Triggers, t)
	at.Scope = &jsondoc.Scope{Outer: r.at.Scope}
	if !ValidKey(m.Key) {
		at.Shape.Report("manifest.schema", m.Offset, at.Pointer, "%s is no stimulus: it is named like a command.", jsondoc.Quote(m.Key))
	}
	if at.Required("summary") {
		t.Summary = at.Line("summary", 200)
	}
	noPolling(at)
	closeBut(at, triggerMembers)
	if !at.Node.Has("source") {
		at.AtSelf("sense.source", "A trigger has a source: webhook, stream, file or push.")
	} else if n := at.Node.Get("source"); n.Kind != jsondoc.Object {
		at.AtValue("source", "sense.source", "The source of a trigger is an object with a kind.")
	} else if src, ok := at.Object("source"); ok {
		noPolling(src)
		closeBut(src, sourceMembers)
		r.senseSource(src)
	}
	t.Unmet = at.Scope.Unmet
}

// pollingWords betray a trigger that looks at the world instead of being told (§7.1).
var pollingWords = []string{"interval", "cron", "crontab", "poll", "polls", "polling", "poller", "schedule", "scheduled", "every", "period", "frequency", "refresh", "rrule"}

func pollingName(name string) bool {
	return slices.ContainsFunc(strings.Split(kebab(name), "-"), func(word string) bool { return slices.Contains(pollingWords, word) })
}

func noPolling(at jsondoc.Cursor) {
	for _, m := range at.Node.Members {
		if pollingName(m.Key) {
			at.AtKey(m.Key, "sense.polling", "%s makes the trigger poll; Sense is told of a change and never looks for one.", jsondoc.Quote(m.Key))
		}
	}
}

// closeBut notes unknown members, but not those that noPolling has named already.
func closeBut(at jsondoc.Cursor, known []string) {
	var polling []string
	for _, m := range at.Node.Members {
		if pollingName(m.Key) {
			polling = append(polling, m.Key)
		}
	}
	at.Close(known, polling)
}

// senseSource checks one source by its kind (§7.1).
func (r reader) senseSource(src jsondoc.Cursor) {
	const code = "sense.source"
	kind := src.Node.Get("kind")
	if kind == nil {
		src.AtSelf(code, "A source has a kind: webhook, stream, file or push.")
		return
	}
	if kind.Kind != jsondoc.String {
		src.AtValue("kind", code, "The kind of a source is webhook, stream, file or push.")
		return
	}
	for _, key := range []string{"id", "map"} {
		senseText(src, key)
	}
	switch kind.Text {
	case "webhook":
		r.webhook(src)
	case "stream":
		if !staticArgv(src.Node.Get("argv")) {
			r.needs(src, "argv", "A stream has the argv of a process: an array of strings.")
		}
	case "file":
		if path := src.Node.Get("path"); path == nil || path.Kind != jsondoc.String || !belowWorkspace(path.Text) {
			r.needs(src, "path", "A file source has a path: a glob below the workspace.")
		}
	case "push":
	default:
		if pollingName(kind.Text) {
			src.AtValue("kind", "sense.polling", "A source of kind %s polls; Sense is told of a change and never looks for one.", jsondoc.Quote(kind.Text))
			return
		}
		src.AtValue("kind", code, "%s is none of webhook, stream, file and push.", jsondoc.Quote(kind.Text))
	}
}

// needs notes a member that is missing or has the wrong form.
func (r reader) needs(src jsondoc.Cursor, key, message string) {
	if src.Node.Has(key) {
		src.AtValue(key, "sense.source", "%s", message)
		return
	}
	src.AtSelf("sense.source", "%s", message)
}

func senseText(src jsondoc.Cursor, key string) {
	if n := src.Node.Get(key); n != nil && n.Kind != jsondoc.String {
		src.AtValue(key, "sense.source", "%s is a string.", jsondoc.Quote(key))
	}
}

// webhook must name how the sender is verified; only a mock pack may go without (§7.1).
func (r reader) webhook(src jsondoc.Cursor) {
	verify := src.Node.Get("verify")
	text := ""
	if verify != nil && verify.Kind == jsondoc.String {
		text = verify.Text
	}
	switch text {
	case "standard-webhooks", "github", "stripe":
	case "hmac-sha256":
		if h := src.Node.Get("header"); h == nil || h.Kind != jsondoc.String || strings.TrimSpace(h.Text) == "" {
			r.needs(src, "header", "A webhook verified by hmac-sha256 names the header that holds the signature.")
		}
	case "none":
		if r.m.Binding.Mode != ModeMock {
			src.AtValue("verify", "sense.source", "A webhook is verified; none is for mock packs only.")
		}
	default:
		r.needs(src, "verify", "A webhook names its verification: standard-webhooks, github, stripe or hmac-sha256.")
	}
}

func staticArgv(n *jsondoc.Node) bool {
	return n != nil && n.Kind == jsondoc.Array && len(n.Items) > 0 &&
		!slices.ContainsFunc(n.Items, func(item *jsondoc.Node) bool {
			return item.Kind != jsondoc.String || strings.Contains(item.Text, "\x00")
		})
}

func belowWorkspace(path string) bool {
	return path != "" && path[0] != '/' && path[0] != '~' && !strings.ContainsAny(path, "\x00\\") && !slices.Contains(strings.Split(path, "/"), "..")
}
