package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// The timeout of a command: its default and the most it may name (§3.2).
const (
	defaultTimeout = time.Minute
	maxTimeout     = time.Hour
)

// commands reads the command map (§3.1, §3.2, §3.4).
func (r reader) commands() {
	at := r.at
	only := r.m.Adapter == SenseOnly
	if !at.Node.Has("verbs") {
		if !only {
			at.AtSelf("manifest.schema", "The member \"verbs\" is missing; only a sense_only pack has no commands.")
		}
		return
	}
	all, ok := at.Object("verbs")
	if !ok {
		return
	}
	switch count := len(all.Node.Members); {
	case only && count > 0:
		at.AtValue("verbs", "manifest.schema", "A sense_only pack has no commands.")
	case !only && count == 0:
		at.AtValue("verbs", "manifest.schema", "A pack has at least one command; only a sense_only pack has none.")
	}
	for _, m := range all.Node.Members {
		if !ValidKey(m.Key) {
			all.AtKey(m.Key, "manifest.schema", "%s is no command key: one to five segments of a-z and 0-9 joined by dots, at most 64 characters.", jsondoc.Quote(m.Key))
		}
	}
	all.Objects(func(m jsondoc.Member, at jsondoc.Cursor) {
		r.m.Commands = append(r.m.Commands, r.command(m, at))
	})
	r.toolNames(all)
}

func (r reader) command(m jsondoc.Member, at jsondoc.Cursor) *Command {
	c := &Command{Key: m.Key, KeyOffset: m.Offset, Node: m.Value, Timeout: defaultTimeout}
	at.Scope = &jsondoc.Scope{Outer: r.at.Scope, Must: at.Strings("must_understand")}
	if at.Required("summary") {
		c.Summary = at.Line("summary", 200)
	}
	if t, ok := at.Text("timeout"); ok {
		c.Timeout = timeout(t, at)
	}
	c.ArgsNode, c.ResultNode = at.Node.Get("args"), at.Node.Get("result")
	c.Examples = examples(at)
	if r.m.Adapter == OpenAPI && at.Required("operation_id") {
		at.Line("operation_id", 1024)
	}
	arguments(at)
	at.Close(commandMembers, adapterMembers(r.m.Adapter))
	at.Scope.Settle(known)
	c.Unmet = at.Scope.Unmet
	return c
}

// timeout reads a Go duration above nothing and of at most an hour (§3.2).
func timeout(text string, at jsondoc.Cursor) time.Duration {
	d, err := time.ParseDuration(text)
	if err == nil && d > 0 && d <= maxTimeout {
		return d
	}
	at.AtValue("timeout", "manifest.schema", "%s is no timeout: a duration such as 30s, above zero and at most 1h.", jsondoc.Quote(text))
	return defaultTimeout
}

// examples reads the arguments of each example.
func examples(at jsondoc.Cursor) []*jsondoc.Node {
	list := at.Node.Get("examples")
	if list == nil {
		return nil
	}
	if list.Kind != jsondoc.Array {
		at.AtValue("examples", "manifest.schema", "\"examples\" is an array of objects with args.")
		return nil
	}
	var out []*jsondoc.Node
	for i, item := range list.Items {
		e := jsondoc.Cursor{Node: item, Pointer: jsondoc.Below(jsondoc.Below(at.Pointer, "examples"), strconv.Itoa(i)), Scope: at.Scope, Shape: at.Shape}
		if item.Kind != jsondoc.Object {
			e.AtSelf("manifest.schema", "An example is an object with args.")
			continue
		}
		e.Close(exampleMembers)
		if args := item.Get("args"); args == nil {
			out = append(out, jsondoc.Obj())
		} else if _, ok := e.Object("args"); ok {
			out = append(out, args)
		}
	}
	return out
}

// arguments checks what the names of the arguments become on other faces: flags (§12.1), the reserved
// arguments of tools (§12.2).
func arguments(at jsondoc.Cursor) {
	properties := at.Node.Get("args").Get("properties")
	if properties == nil || properties.Kind != jsondoc.Object {
		return
	}
	args := jsondoc.Cursor{Node: properties, Pointer: at.Pointer + "/args/properties", Shape: at.Shape}
	nameFaults(properties, func(m jsondoc.Member, code, message string) { args.AtKey(m.Key, code, "%s", message) })
}

// nameFaults finds the arguments whose names other faces cannot have.
func nameFaults(properties *jsondoc.Node, bad func(m jsondoc.Member, code, message string)) {
	if properties == nil {
		return
	}
	flags := make(map[string]string, len(properties.Members))
	for _, m := range properties.Members {
		if strings.HasPrefix(m.Key, "hcp_") {
			bad(m, "manifest.reserved-arg", fmt.Sprintf("The argument %s takes a name that begins with hcp_, which is reserved.", jsondoc.Quote(m.Key)))
		}
		for _, flag := range flagsOf(m) {
			if other, taken := flags[flag]; taken && other != m.Key {
				bad(m, "manifest.flag-collision", fmt.Sprintf("The arguments %s and %s both make the flag --%s.", jsondoc.Quote(other), jsondoc.Quote(m.Key), flag))
				break
			}
			flags[flag] = m.Key
		}
	}
}

// flagsOf are the flags of one argument; a boolean has a second one that says no.
func flagsOf(m jsondoc.Member) []string {
	name := FlagName(m.Key)
	if t := m.Value.Get("type"); t != nil && t.Kind == jsondoc.String && t.Text == "boolean" {
		return []string{name, "no-" + name}
	}
	return []string{name}
}

// toolNames checks that each command has a tool name of its own, not too long (§3.1, §12.2).
func (r reader) toolNames(all jsondoc.Cursor) {
	seen := make(map[string]string, len(all.Node.Members))
	for _, m := range all.Node.Members {
		name := ToolName(r.m.ID, m.Key)
		if other, taken := seen[name]; taken {
			all.AtKey(m.Key, "manifest.tool-name-collision", "The commands %s and %s have the same tool name %s.", jsondoc.Quote(other), jsondoc.Quote(m.Key), jsondoc.Quote(name))
			continue
		}
		seen[name] = m.Key
		switch n := utf8.RuneCountInString(name); {
		case n > toolNameMax:
			all.AtKey(m.Key, "manifest.tool-name-length", "The tool name %s has %d characters; %d are allowed.", jsondoc.Quote(name), n, toolNameMax)
		case n > toolNameLong:
			all.AtKey(m.Key, "manifest.tool-name-long", "The tool name %s has %d characters; some hosts cut it after %d.", jsondoc.Quote(name), n, toolNameLong)
		}
	}
}

// Command is the command of that key; nil when the pack declares none.
func (m *Manifest) Command(key string) *Command {
	for _, c := range m.Commands {
		if c.Key == key {
			return c
		}
	}
	return nil
}

// Nearest are up to three keys that somebody who typed key may have meant, the likeliest first (§6.3).
func (m *Manifest) Nearest(key string) []string {
	type near struct {
		key  string
		cost int
	}
	var found []near
	for _, c := range m.Commands {
		cost := protocol.Distance(key, c.Key)
		if strings.HasPrefix(c.Key, key) || strings.HasSuffix(c.Key, "."+key) {
			cost = 1
		}
		if cost <= max(2, len(c.Key)/3) {
			found = append(found, near{c.Key, cost})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Or(a.cost-b.cost, strings.Compare(a.key, b.key)) })
	var out []string
	for _, n := range found[:min(3, len(found))] {
		out = append(out, n.key)
	}
	return out
}
