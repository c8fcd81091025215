package cli

import (
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// This file is the pure half of §12.1's flags: which flags a command has by its args schema, and what a text behind
// one means. It types as k=v does (words.go), and judges no value either: the schema does, at step 5.

// argFlag is the flag of one argument.
type argFlag struct {
	name string // without the dashes
	prop string
	typing
	required bool
}

// argFlags are the flags of a command, in the order of its schema; nil when the command is not known.
type argFlags []argFlag

// flagsOfArgs lists the flags. Where two properties of a combined schema come to one name, none of them has it: they
// are named behind -- (within "properties" lint refuses that).
func flagsOfArgs(schema *jsondoc.Node) argFlags {
	table, taken := argFlags{}, map[string]int{}
	root := typing{schema, schema}
	for _, m := range root.properties() {
		name := manifest.FlagName(m.Key)
		taken[name]++
		table = append(table, argFlag{name, m.Key, typing{schema, m.Value}, root.demands(m.Key)})
	}
	return slices.DeleteFunc(table, func(f argFlag) bool { return taken[f.name] > 1 })
}

// properties are the members that a schema and its combinations declare, each once.
func (t typing) properties() []jsondoc.Member {
	var all []jsondoc.Member
	seen := map[string]bool{}
	for _, s := range t.variants() {
		for _, m := range members(s) {
			if !seen[m.Key] {
				seen[m.Key] = true
				all = append(all, m)
			}
		}
	}
	return all
}

// demands says whether the schema itself, or all that it is made of, requires the member.
func (t typing) demands(name string) bool { return listsText(t.node.Get("required"), name) }

// find is the flag that a word without its dashes names: path leads to the argument, below it where dots follow; no
// says that it is the --no-x of a switch.
func (table argFlags) find(word string) (f *argFlag, path []string, at typing, no bool) {
	head, rest, nested := strings.Cut(word, ".")
	for i := range table {
		if table[i].name == head {
			f = &table[i]
			break
		}
	}
	switch {
	case f != nil && !nested:
		return f, []string{f.prop}, f.typing, false
	case f != nil && rest != "":
		below, at := f.member(rest)
		return f, append([]string{f.prop}, below...), at, false
	}
	if name, negated := strings.CutPrefix(word, "no-"); negated && !nested {
		for i := range table {
			if f = &table[i]; f.name == name && f.isSwitch() {
				return f, []string{f.prop}, f.typing, true
			}
		}
	}
	return nil, nil, typing{}, false
}

// member follows names behind a dot: as they are declared, else by their kebab-case where only one has it.
func (t typing) member(key string) (path []string, at typing) {
	path, at = t.locate(key)
	if at.node != nil {
		return path, at
	}
	var kebab []string
	for name := range strings.SplitSeq(key, ".") {
		var like []string
		for _, m := range t.properties() {
			if m.Key == name || manifest.FlagName(m.Key) == name {
				like = append(like, m.Key)
			}
		}
		if len(like) != 1 {
			return path, at
		}
		kebab, t = append(kebab, like[0]), t.property(like[0])
	}
	return kebab, t
}

// types are the types that a value may have; none means any.
func (t typing) types() []string {
	var all []string
	for _, s := range t.variants() {
		all = append(all, typeNames(s)...)
	}
	return all
}

func (t typing) takes(name string) bool { return slices.Contains(t.types(), name) }

// isSwitch says whether the flag needs no value: it is true, or null, or with --no-x false.
func (t typing) isSwitch() bool {
	all := t.types()
	return slices.Contains(all, "boolean") && !slices.ContainsFunc(all, func(s string) bool { return s != "boolean" && s != "null" })
}

// secret says whether the argument is one that no message may show (§15.4).
func (t typing) secret() bool {
	for _, s := range t.variants() {
		if hidden := s.Get("writeOnly"); hidden != nil && hidden.Text == "true" {
			return true
		}
	}
	return t.format() == "password"
}

// repeats says whether the flag may be given again.
func (t typing) repeats() bool { return t.takes("array") || len(t.types()) == 0 }

// items is the schema of an array's items.
func (t typing) items() typing {
	for _, s := range t.variants() {
		if n := s.Get("items"); n != nil {
			return typing{t.root, n}
		}
	}
	return typing{root: t.root}
}

// flagValue types the text behind a flag: as k=v, and objects as JSON. whole says that it is the argument itself and
// not an item of its array; fault is why it can be neither.
func (t typing) flagValue(v string) (n *jsondoc.Node, whole bool, fault string) {
	text := strings.TrimSpace(v)
	switch {
	case t.takes("string") || len(t.types()) == 0:
		n, whole = t.read(v)
		return n, whole, ""
	case t.takes("object") && strings.HasPrefix(text, "{"):
		return jsonText(text)
	case t.takes("array") && strings.HasPrefix(text, "["):
		return t.listText(text)
	case t.takes("array"):
		n, _, fault = t.items().flagValue(v)
		return n, false, fault
	case t.takes("object") && v != "null":
		return nil, true, "it takes an object as JSON, or its members one by one"
	}
	n, whole = t.read(v)
	return n, whole, ""
}

// listText is a JSON array given to a flag that takes one item at a time: the array as a whole where no item could have
// that text, else the item; a text that may be either is nobody's to guess.
func (t typing) listText(text string) (n *jsondoc.Node, whole bool, fault string) {
	items := t.items()
	list, _, bad := jsonText(text)
	switch {
	case items.takes("string") || len(items.types()) == 0:
		if bad == "" {
			return nil, false, "that may be one item or a whole list: give the flag once for each item, or the list behind :="
		}
		n, _ = items.read(text)
		return n, false, ""
	case bad != "":
		return nil, false, bad
	case items.takes("array"):
		return list, false, ""
	}
	return list, true, ""
}

// jsonText reads one JSON value.
func jsonText(text string) (n *jsondoc.Node, whole bool, fault string) {
	n, faults := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if len(faults) > 0 {
		return nil, true, "the text is not one JSON value: " + protocol.Clause(faults[0].Message)
	}
	return n, true, ""
}

// unknownFlag says what a flag may have been meant to be.
func (table argFlags) unknownFlag(word string, own []string) string {
	names := slices.Clone(own)
	for _, f := range table {
		names = append(names, f.name)
		if f.isSwitch() {
			names = append(names, "no-"+f.name)
		}
		if f.prop == word {
			return fmt.Sprintf("There is no flag --%s; it is --%s", clip(clean(word)), f.name)
		}
	}
	said := fmt.Sprintf("There is no flag --%s", clip(clean(word)))
	if near := protocol.Nearest(word, names); near != "" {
		said += fmt.Sprintf("; the nearest is --%s", near)
	}
	return said
}
