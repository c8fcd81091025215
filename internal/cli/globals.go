package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// globals are the flags that every command takes.
type globals struct {
	JSON, Quiet                         bool
	Home, Session, As, Project, Workdir string
	Color                               string
	nobody                              bool // --as was given, and empty
}

// register declares the global flags.
func (g *globals) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.BoolVar(&g.JSON, "json", false, "print one JSON value, errors too")
	f.StringVar(&g.Home, "home", "", "store `DIR` (default $HCP_HOME, else ~/.hcp)")
	f.StringVar(&g.Session, "session", "", "session `ID` (default $HCP_SESSION, else default)")
	f.StringVar(&g.As, "as", "", "act as `PRINCIPAL` (default $HCP_PRINCIPAL, else the user)")
	f.StringVar(&g.Project, "project", "", "project `NAME` for land brain (default $HCP_PROJECT)")
	f.StringVar(&g.Workdir, "workspace", "", "workspace `DIR` for land local (default $HCP_WORKSPACE, else found)")
	f.BoolVar(&g.Quiet, "quiet", false, "leave out notes and next steps")
	f.StringVar(&g.Color, "color", "auto", "colour at `WHEN`: auto, always or never")
}

// check refuses values that no command could use. An empty one comes of a variable that is not set, and would say
// less than was meant; an empty --as is left to those who ask who acts (§9.3).
func (g *globals) check(c *cobra.Command) error {
	g.nobody = c.Flags().Changed("as") && g.As == ""
	if empty := emptyFlag(c.Flags()); empty != "" {
		return usage(commandPath(c), "%s", emptySentence(empty))
	}
	if bad := g.colorFault(); bad != "" {
		return usage("", "%s", bad)
	}
	return nil
}

// emptyFlag is a flag of ours that was given and is empty; "" when none is.
func emptyFlag(set *pflag.FlagSet) string {
	empty := ""
	set.Visit(func(f *pflag.Flag) {
		list, many := f.Value.(pflag.SliceValue)
		if f.Name != "as" && (f.Value.Type() == "string" && f.Value.String() == "" || many && slices.Contains(list.GetSlice(), "")) {
			empty = f.Name
		}
	})
	return empty
}

func emptySentence(flag string) string {
	return "--" + flag + " is given and empty; leave it out, or give it a value."
}

// colorFault says what is wrong with --color.
func (g *globals) colorFault() string {
	switch g.Color {
	case "auto", "always", "never":
		return ""
	}
	return fmt.Sprintf("--color is auto, always or never, not %q", clean(g.Color))
}

// takesValue says whether a global flag is followed by its value.
func takesValue(name string) bool {
	return strings.Contains(" home session as project workspace color ", " "+name+" ")
}
