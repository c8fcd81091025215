package cli

import (
	"fmt"
	"strings"

	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// asker puts a consent before a person; nil where nobody may be asked (§12.1.6), so that the rules decide
// without one.
func (d *deps) asker(s protocol.Session) lifecycle.Ask {
	if !d.mayAsk(s) {
		return nil
	}
	return func(c lifecycle.Consent) bool {
		p := d.errPage()
		showConsent(p, c)
		if p.err != nil {
			return false
		}
		yes, err := d.ask(consentQuestion(c.Question))
		return err == nil && yes
	}
}

func consentQuestion(kind string) string {
	switch kind {
	case "policy":
		return "Take the version that may do more?"
	case "add":
		return "Add it?"
	case "connect":
		return "Let its commands use this?"
	case "uninstall":
		return "Uninstall it there too?"
	default:
		return "Allow this?"
	}
}

// showConsent lists what a pack would get, before anything is let in.
func showConsent(p *page, c lifecycle.Consent) {
	for _, k := range c.Packs {
		p.head(k.PackID + " " + k.Version)
		p.facts(
			[2]string{"  from", k.Source},
			[2]string{"  reads", strings.Join(k.Reads, " ")},
			[2]string{"  network", strings.Join(k.Network, " ")},
			[2]string{"  credential", k.Credential},
		)
		for _, prog := range k.Programs {
			p.line("  program %s", programLine(prog))
		}
		if k.Native {
			p.styled(warn, "  asks to run outside the sandbox")
		}
		showDifferences(p, k.Changes)
		for _, cmd := range k.Commands {
			mark := string(cmd.Operation) + ", " + string(cmd.Land)
			if cmd.Confirm {
				mark += ", asks before it runs"
			}
			p.line("  command %s (%s): %s", cmd.Verb, mark, cmd.Summary)
		}
		for _, a := range k.Agents {
			p.line("  %s may already run %s", a.Principal, orWord(strings.Join(append(append([]string{}, a.Read...), a.Write...), ", "), "nothing of it"))
		}
	}
	if len(c.Sessions) > 0 {
		p.line("Other sessions use it: %s.", strings.Join(c.Sessions, ", "))
	}
}

func programLine(prog lifecycle.ConsentProgram) string {
	line := prog.Name
	if prog.Path != "" && prog.Path != prog.Name {
		line += " = " + prog.Path
	}
	if prog.Uses {
		line += " (started by it)"
	}
	if prog.Note != "" {
		line += fmt.Sprintf(" (%s)", prog.Note)
	}
	return line
}
