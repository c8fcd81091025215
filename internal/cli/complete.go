package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hcpx/internal/app"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Completion reads what is installed and nothing else: it neither makes the store nor writes to it, and
// an unreadable store completes to nothing.

// packIDs completes the id of an installed pack.
func (d *deps) packIDs(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a, err := d.app()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.PackIDs(), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeExec completes pack, verb, and behind -- the names of arguments.
func (d *deps) completeExec(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	a, err := d.app()
	if err != nil {
		return nil, quiet
	}
	switch len(args) {
	case 0:
		return a.PackIDs(), quiet
	case 1:
		return a.VerbKeys(args[0]), quiet
	}
	if c.ArgsLenAtDash() < 0 {
		return []string{"--"}, quiet
	}
	return completeWord(args[2:], a.ArgsSchema(args[0], args[1]), word)
}

// completeWord completes k=v: the name of an argument that is not given yet, or what it may be.
func completeWord(before []string, schema *jsondoc.Node, word string) ([]string, cobra.ShellCompDirective) {
	if key, _, found := strings.Cut(word, "="); found {
		if values := choices(key, schema); len(values) > 0 {
			return values, quiet
		}
		return nil, cobra.ShellCompDirectiveDefault // a value may be a path
	}
	var names []string
	for _, m := range members(schema) {
		if !given(before, m.Key) || m.Value.Get("items") != nil {
			names = append(names, m.Key+"=")
		}
	}
	return names, quiet | cobra.ShellCompDirectiveNoSpace
}

// choices are the words for an argument that takes one of a few values.
func choices(key string, schema *jsondoc.Node) []string {
	_, t := typing{schema, schema}.locate(key)
	var words []string
	for _, value := range t.choices(time.Time{}) {
		words = append(words, key+"="+value)
	}
	return words
}

// choices are the values of an enum, the two of a boolean, and now in the form of a time; a zero now is none.
func (t typing) choices(now time.Time) []string {
	var words []string
	for _, s := range t.variants() {
		if e := s.Get("enum"); e != nil {
			for _, o := range e.Items {
				words = append(words, orWord(o.Text, string(o.Append(nil))))
			}
			return words
		}
		if slices.Contains(typeNames(s), "boolean") {
			return []string{"true", "false"}
		}
	}
	layout := map[string]string{"date": time.DateOnly, "date-time": time.RFC3339, "time": "15:04:05Z07:00"}[t.format()]
	if layout != "" && !now.IsZero() {
		return []string{now.Format(layout)}
	}
	return nil
}

func given(words []string, key string) bool {
	for _, w := range words {
		if strings.HasPrefix(w, key+"=") || strings.HasPrefix(w, key+":=") {
			return true
		}
	}
	return false
}

// shippedPacks completes the packs that come with this program, and directories.
func (d *deps) shippedPacks(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return app.Shipped(), cobra.ShellCompDirectiveDefault
}

func capabilities() []string {
	names := make([]string, len(protocol.Capabilities))
	for i, c := range protocol.Capabilities {
		names[i] = string(c)
	}
	return names
}
