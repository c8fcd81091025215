package policy

import (
	"strconv"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// The members that are known; all others are ignored with a warning (§13.2), unless must_understand names
// them (§2.6).
var (
	rootMembers    = []string{"surface_id", "verbs", "triggers", "must_understand"}
	verbMembers    = []string{"operation", "privacy", "confirm", "preview", "protected", "redact", "must_understand"}
	triggerMembers = []string{"operation", "privacy", "confirm", "redact"}
	privacyMembers = []string{"land"}
	confirmMembers = []string{"message"}
)

func known(name string) bool {
	for _, list := range [][]string{rootMembers, verbMembers, privacyMembers, confirmMembers} {
		for _, m := range list {
			if m == name {
				return true
			}
		}
	}
	return false
}

// Decode reads policy.json and reports everything that is wrong with it, each with its place (§4, §14.2).
// The Policy is nil only when src is not one JSON object.
func Decode(src []byte) (*Policy, []protocol.Issue) {
	shape := jsondoc.Shape{Form: "policy.schema", Unknown: "manifest.unknown-field"}
	root, faults := jsondoc.Parse(src, jsondoc.Limits{})
	shape.Faults = faults
	if root == nil {
		return nil, issues(src, shape.Faults)
	}
	if root.Kind != jsondoc.Object {
		shape.Report(shape.Form, root.Offset, "", "A policy is one JSON object.")
		return nil, issues(src, shape.Faults)
	}
	p := &Policy{Root: root, Src: src}
	scope := &jsondoc.Scope{}
	at := jsondoc.Cursor{Node: root, Scope: scope, Shape: &shape}
	scope.Must = at.Strings("must_understand")
	if at.Required("surface_id") {
		p.SurfaceID = at.Line("surface_id", 64)
	}
	if all, ok := at.Object("verbs"); ok {
		all.Objects(func(m jsondoc.Member, at jsondoc.Cursor) { p.Verbs = append(p.Verbs, verb(m, at)) })
	}
	if all, ok := at.Object("triggers"); ok {
		all.Objects(func(m jsondoc.Member, at jsondoc.Cursor) { p.Triggers = append(p.Triggers, trigger(m, at)) })
	}
	at.Close(rootMembers)
	scope.Settle(known)
	p.Unmet = scope.Unmet
	return p, issues(src, shape.Faults)
}

// entry reads what commands and triggers share: operation, land, redact (§4.1 to §4.3, §4.6).
func entry(m jsondoc.Member, at jsondoc.Cursor) *Entry {
	e := &Entry{Key: m.Key, KeyOffset: m.Offset, Node: m.Value}
	if at.Required("operation") {
		e.Operation = protocol.Operation(at.Choice("operation", string(protocol.Read), string(protocol.Write)))
	}
	if at.Required("privacy") {
		if privacy, ok := at.Object("privacy"); ok {
			privacy.Close(privacyMembers)
			if privacy.Required("land") {
				e.Land = protocol.Land(privacy.Choice("land", string(protocol.Personal), string(protocol.Brain), string(protocol.Local)))
			}
		}
	}
	e.Redact = at.Strings("redact")
	pointers(at)
	return e
}

// pointers checks the form of the JSON pointers of redact (§4.6).
func pointers(at jsondoc.Cursor) {
	list := at.Node.Get("redact")
	if list == nil || list.Kind != jsondoc.Array {
		return
	}
	for i, item := range list.Items {
		if _, ok := jsondoc.Tokens(item.Text); item.Kind == jsondoc.String && !ok {
			at.Shape.Report(at.Shape.Form, item.Offset, at.Pointer+"/redact/"+strconv.Itoa(i), "%s is no JSON pointer such as /token.", jsondoc.Quote(item.Text))
		}
	}
}

// verb reads a command's entry (§4.1). What can't be read is taken the strict way.
func verb(m jsondoc.Member, at jsondoc.Cursor) *Entry {
	at.Scope = &jsondoc.Scope{Outer: at.Scope, Must: at.Strings("must_understand")}
	e := entry(m, at)
	e.Preview, _ = at.Text("preview")
	e.Protected = at.Strings("protected")
	if at.Node.Has("confirm") {
		if e.Operation == protocol.Read {
			at.AtKey("confirm", "policy.confirm-on-read", "%s is a read command, and confirm is for writes.", jsondoc.Quote(m.Key))
		} else {
			e.Confirm, e.Message = confirm(at)
		}
	}
	at.Close(verbMembers)
	at.Scope.Settle(known)
	e.Unmet = at.Scope.Unmet
	return e
}

// trigger reads a trigger's entry: always read, never confirm (§4.5).
func trigger(m jsondoc.Member, at jsondoc.Cursor) *Entry {
	e := entry(m, at)
	if e.Operation == protocol.Write {
		at.AtValue("operation", "policy.schema", "A trigger is always read.")
		e.Operation = ""
	}
	if at.Node.Has("confirm") {
		at.AtKey("confirm", "policy.confirm-on-read", "%s is a trigger, and confirm is for writes.", jsondoc.Quote(m.Key))
	}
	at.Close(triggerMembers)
	return e
}

// confirm reads true, false, or an object with the sentence (§4.5). Anything else is a gate all the same.
func confirm(at jsondoc.Cursor) (bool, string) {
	n := at.Node.Get("confirm")
	switch n.Kind {
	case jsondoc.Bool:
		return n.Text == "true", ""
	case jsondoc.Object:
	default:
		at.AtValue("confirm", "policy.schema", "\"confirm\" is true or an object with a message.")
		return true, ""
	}
	block, _ := at.Object("confirm")
	block.Close(confirmMembers)
	if !block.Required("message") {
		return true, ""
	}
	message := block.Line("message", 500)
	if bad := badTemplate(message); bad != "" {
		block.AtValue("message", "policy.schema", "The message has a brace without its partner at %s.", jsondoc.Quote(bad))
		return true, ""
	}
	return true, message
}

// Verb is the entry of a command; nil when there is none, and then nothing may run (§4.4).
func (p *Policy) Verb(key string) *Entry { return find(p.Verbs, key) }

// Trigger is the entry of a trigger; nil when there is none.
func (p *Policy) Trigger(key string) *Entry { return find(p.Triggers, key) }

func find(entries []*Entry, key string) *Entry {
	for _, e := range entries {
		if e.Key == key {
			return e
		}
	}
	return nil
}

// issues gives the faults their lines and columns and the catalogue's severity and section.
func issues(src []byte, faults []jsondoc.Fault) []protocol.Issue {
	if len(faults) == 0 {
		return nil
	}
	out := make([]protocol.Issue, len(faults))
	for i, spot := range jsondoc.Spots(src, faults) {
		code := protocol.IssueCode(faults[i].Code)
		switch faults[i].Code {
		case jsondoc.TooLarge:
			code = "pack.too-large"
		case jsondoc.TooDeep:
			code = jsondoc.Syntax
		}
		out[i] = protocol.NewIssue(code, File, strings.TrimSpace(faults[i].Message))
		out[i].Line, out[i].Column, out[i].Pointer = spot.Line, spot.Column, faults[i].Pointer
	}
	protocol.SortIssues(out)
	return out
}
