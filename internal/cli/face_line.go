package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"hcpx/internal/app"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// faceLine is a command line of a pack's face (§12.1) while it is read, from left to right: hcpx's own flags anywhere,
// the pack, the words of the verb_key, then flags of arguments, and behind -- words as exec takes them.
//
// No flag takes a word that begins with -- for its value, so that a forgotten value never swallows a flag: such a text is
// given as --flag=--text. A word that stands alone behind the command is refused, never dropped.
type faceLine struct {
	own    *pflag.FlagSet
	args   []string
	lookup func(pack string) *app.Pack // nil when the pack cannot be read

	o       execOptions
	help    bool
	words   []string          // the words behind the pack
	pack    *app.Pack         // nil when it cannot be read
	command *manifest.Command // nil when no command is named
	flags   argFlags
	b       builder
	given   map[string]bool // pointers of the arguments that have their one value
	pending string          // the flag at the end that still waits for its value
	behind  bool            // -- was seen
	fault   string          // what is wrong with hcpx's own flags and words
}

// read takes the words one by one.
func (l *faceLine) read() {
	l.given, l.b.top = map[string]bool{}, &object{}
	for len(l.args) > 0 {
		word := l.args[0]
		l.args = l.args[1:]
		switch {
		case word == "--":
			l.settle()
			l.behind = true
			for _, w := range l.args {
				l.b.word(w)
			}
			l.args = nil
		case strings.HasPrefix(word, "--"):
			l.flag(word[2:])
		case word == "-h":
			l.help = true
		case l.o.Pack == "":
			l.o.Pack = word // and whatever stands before it is hcpx's own
			l.pack = l.lookup(word)
		case l.settled() || strings.HasPrefix(word, "-"):
			l.stray(word)
		default:
			l.words = append(l.words, word)
		}
	}
	l.settle()
}

// settled says whether the words of the command are over.
func (l *faceLine) settled() bool { return l.o.Verb != "" }

// settle finds the command that the words name: the longest run of them, with the pack's own name before it or without
// (§12.1). What is no command is named as it was typed, for the denial of step 3.
func (l *faceLine) settle() {
	if l.settled() || len(l.words) == 0 {
		return
	}
	l.o.Verb = strings.Join(l.words, ".")
	for n := len(l.words); n > 0 && l.pack != nil; n-- {
		key := strings.Join(l.words[:n], ".")
		if l.command = l.pack.Command(key); l.command == nil {
			l.command = l.pack.Command(l.o.Pack + "." + key)
		}
		if l.command == nil {
			continue
		}
		l.o.Verb = l.command.Key
		if schema, err := l.command.Args(); err == nil {
			l.b.schema = typing{schema.Node(), schema.Node()}
			l.flags = flagsOfArgs(schema.Node())
		}
		for _, w := range l.words[n:] {
			l.stray(w)
		}
		break
	}
}

// flag reads one flag, hcpx's own or an argument's; word is without its dashes.
func (l *faceLine) flag(word string) {
	name, value, valued := strings.Cut(word, "=")
	if f := l.own.Lookup(name); f != nil {
		l.ownFlag(f, value, valued)
		return
	}
	if l.settle(); !l.settled() {
		l.wrong("--%s stands before the command that it belongs to", clip(clean(name)))
		l.args = nil // which of the words is its value only the command would tell
		return
	}
	if !utf8.ValidString(word) {
		l.b.refuse("", "--%s is not valid UTF-8", clip(clean(name)))
		return
	}
	name, literal := strings.CutSuffix(name, ":")
	if literal && !valued {
		name, literal = name+":", false // of --x:=JSON there is only a part
	}
	if l.command == nil {
		l.unknown(name, value, valued)
		return
	}
	f, path, at, no := l.flags.find(name)
	pointer := jsondoc.Pointer(path...)
	switch {
	case f == nil:
		l.b.refuse("", "%s", l.flags.unknownFlag(name, ownNames(l.own)))
		if !valued && len(l.args) > 0 && !strings.HasPrefix(l.args[0], "-") {
			l.args = l.args[1:] // which is its value, and wrong with it
		}
		return
	case no && valued:
		l.b.refuse(pointer, "--%s takes no value: it is --%s that takes true or false", name, f.name)
		return
	case no:
		value = "false"
	case !valued && at.isSwitch():
		value = l.truth()
	case !valued:
		if value, valued = l.value(name); !valued {
			l.b.refuse(pointer, "--%s needs a value; one that begins with -- is given as --%s=--…", name, name)
			return
		}
	}
	l.put(argument{name, path, at}, value, literal)
}

// argument is where the value of a flag goes.
type argument struct {
	name string
	path []string
	typing
}

// put gives an argument its value.
func (l *faceLine) put(a argument, value string, literal bool) {
	pointer := jsondoc.Pointer(a.path...)
	if l.given[pointer] && !a.repeats() {
		l.b.refuse(pointer, "--%s is given twice, and takes one value", a.name)
		return
	}
	l.given[pointer] = true
	field := l.b.place(a.path)
	if field == nil {
		l.b.refuse(pointer, "--%s is given both as a value and with members", a.name)
		return
	}
	if literal {
		l.b.json(field, a.path, value)
		return
	}
	if !utf8.ValidString(value) {
		l.b.refuse(pointer, "The value of --%s is not valid UTF-8", a.name)
		return
	}
	node, whole, fault := a.flagValue(value)
	if fault != "" {
		l.b.refuse(pointer, "--%s: %s", a.name, fault)
		return
	}
	field.add(node, whole)
}

// unknown keeps a flag of a command that is not known, so that step 3 refuses it with all that was said.
func (l *faceLine) unknown(name, value string, valued bool) {
	if !valued {
		if value, valued = l.value(name); !valued {
			l.pending, value = "", "true"
		}
	}
	l.put(argument{name: name, path: []string{name}}, value, false)
}

// value takes the next word as the value of a flag.
func (l *faceLine) value(name string) (string, bool) {
	if len(l.args) == 0 {
		l.pending = name
		return "", false
	}
	if strings.HasPrefix(l.args[0], "--") {
		return "", false
	}
	value := l.args[0]
	l.args = l.args[1:]
	return value, true
}

// truth is the value of a switch without =: true, unless the next word says it. Nothing else may stand there, so that
// word is no other's.
func (l *faceLine) truth() string {
	if len(l.args) > 0 && (l.args[0] == "true" || l.args[0] == "false") {
		word := l.args[0]
		l.args = l.args[1:]
		return word
	}
	return "true"
}

// ownFlag sets one of hcpx's own flags.
func (l *faceLine) ownFlag(f *pflag.Flag, value string, valued bool) {
	switch {
	case valued:
	case f.Value.Type() == "bool":
		value = l.truth()
	default:
		if value, valued = l.value(f.Name); !valued {
			l.wrong("--%s needs a value", f.Name)
			return
		}
	}
	if err := l.own.Set(f.Name, value); err != nil {
		l.wrong("%s", flagSentence(err))
	}
}

// stray refuses a word that is neither a flag nor the value of one.
func (l *faceLine) stray(word string) {
	shown := fmt.Sprintf("%q", clip(clean(word)))
	if slices.ContainsFunc(l.flags, func(f argFlag) bool { return f.secret() }) {
		shown = "A word" // it may be the secret
	}
	switch {
	case !l.settled():
		l.wrong("%s is no word of a command, and no flag has one dash", shown)
	case strings.HasPrefix(word, "-"):
		l.b.refuse("", "%s is no flag: all have two dashes; a value stands right behind its flag", shown)
	default:
		l.b.refuse("", "%s stands alone: arguments of %s/%s are flags, or k=v behind --", shown, l.o.Pack, l.o.Verb)
	}
}

// wrong keeps the first thing that is wrong with what is not an argument.
func (l *faceLine) wrong(format string, args ...any) {
	if l.fault == "" {
		l.fault = fmt.Sprintf(format, args...)
	}
}

// violations are all that cannot be said as a request once both ids are known (§6.7).
func (l *faceLine) violations() []protocol.Violation {
	bad := slices.Clone(l.b.bad)
	if l.fault != "" {
		bad = append([]protocol.Violation{{Message: stopped(l.fault)}}, bad...)
	}
	return bad
}

func ownNames(set *pflag.FlagSet) []string {
	var names []string
	set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
