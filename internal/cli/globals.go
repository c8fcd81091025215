package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// globals are the flags that every command takes.
type globals struct {
	JSON, Quiet                         bool
	Home, Session, As, Project, Workdir string
	Color                               string
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

// check refuses values that no command could use.
func (g *globals) check() error {
	switch g.Color {
	case "auto", "always", "never":
		return nil
	}
	return usage("", "--color is auto, always or never, not %q", clean(g.Color))
}

// takesValue says whether a global flag is followed by its value.
func takesValue(name string) bool {
	return strings.Contains(" home session as project workspace color ", " "+name+" ")
}
