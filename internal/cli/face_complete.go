package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hcpx/internal/protocol"
)

// Completion of a face (§12.1) reads the state and one manifest, runs nothing, and offers activated packs alone.

const quiet = cobra.ShellCompDirectiveNoFileComp

// completes gives the root what completes a command line: its first word may be an activated pack, and where it is one
// already the words are the face's. rest is the line, the last word not typed to its end.
func (d *deps) completes(root *cobra.Command, rest []string) {
	root.ValidArgsFunction = d.completePacks
	if len(rest) == 0 {
		return
	}
	if word, _ := commandWord(rest[:len(rest)-1]); word != "" && word != "help" && !ownWord(word) {
		root.DisableFlagParsing = true // its flags are those of the pack's command
		root.ValidArgsFunction = d.completeFace
	}
}

func ownWord(word string) bool {
	return slices.ContainsFunc(table(), func(e entry) bool { return e.name == word })
}

func (d *deps) completePacks(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return d.activePacks(), quiet
}

func (d *deps) activePacks() []string {
	a, err := d.app()
	if err != nil {
		return nil
	}
	s, err := d.who()
	if err != nil && s.ID == "" {
		return nil
	}
	return a.ActivePacks(s.ID)
}

// completeFace completes words of a command, then its flags and their values.
func (d *deps) completeFace(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	l := d.faceLine(args)
	if l.pack == nil || !slices.Contains(d.activePacks(), l.o.Pack) {
		return nil, quiet
	}
	flag, value, valued := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	switch {
	case l.behind:
		return completeWord(args[slices.Index(args, "--")+1:], l.b.schema.node, word)
	case l.pending != "":
		return l.completeValue(l.pending, word, d.env.Now())
	case strings.HasPrefix(word, "--") && valued:
		return l.completeValue(flag, value, d.env.Now())
	case strings.HasPrefix(word, "-"):
		return starting(word, l.openFlags()), quiet
	}
	next := starting(word, below(l.pack.Manifest, l.words))
	if len(next) == 0 && word == "" {
		next = l.openFlags()
	}
	return next, quiet
}

// openFlags are the flags that may still be given, those that must be first.
func (l *faceLine) openFlags() []string {
	var must, may []string
	for _, f := range l.flags {
		if l.given["/"+f.prop] && !f.repeats() {
			continue
		}
		names := []string{"--" + f.name}
		if f.isSwitch() {
			names = append(names, "--no-"+f.name)
		}
		if f.required {
			must = append(must, names...)
		} else {
			may = append(may, names...)
		}
	}
	if l.command != nil {
		may = append(may, "--plan")
		if e := l.pack.Policy.Verb(l.command.Key); e != nil && e.Operation == protocol.Write {
			may = append(may, "--confirm", "--approval", "--idempotency-key")
		}
	}
	return append(must, may...)
}

// completeValue completes the value of a flag: one of an enum, true or false, today for a date; else it may be a path.
func (l *faceLine) completeValue(flag, value string, now time.Time) ([]string, cobra.ShellCompDirective) {
	if l.own.Lookup(flag) != nil {
		if flag == "color" {
			return starting(value, []string{"auto", "always", "never"}), quiet
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	f, _, at, no := l.flags.find(flag)
	if f == nil || no {
		return nil, quiet
	}
	if at.takes("array") {
		at = at.items()
	}
	if values := at.choices(now); len(values) > 0 {
		return starting(value, values), quiet
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func starting(with string, all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, with) })
}
