package lifecycle

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/manifest"
	"hcpx/internal/projection"
	"hcpx/internal/protocol"
	"hcpx/internal/skill"
)

// Offered are the activated packs, or those of them that only names, with the commands that exec would not refuse to
// the session's Principal (§11.2, HCP-12.2-6): the same refusal that availability reports. A pack without one is left out,
// and one that is broken; the bootstrap pack comes last. It writes nothing.
func (l *Lifecycle) Offered(s protocol.Session, only []string) ([]projection.Pack, *protocol.Error) {
	l = l.reading()
	st, err := l.state()
	if err != nil {
		return nil, err
	}
	ids, fault := l.Store.Packs()
	if fault != nil {
		return nil, storeFault(fault, "The packs cannot be listed")
	}
	slices.Sort(ids)
	if at := slices.Index(ids, gate.Bootstrap); at >= 0 {
		ids = append(slices.Delete(ids, at, at+1), gate.Bootstrap)
	}
	a := available{l, s, st, grant.NewSet(st.Grants)}
	var list []projection.Pack
	for _, id := range ids {
		if only != nil && !slices.Contains(only, id) || l.Gate.Activated(st, s.ID, id) != nil {
			continue
		}
		if loaded, refusal := l.Gate.Installed(id); refusal == nil {
			if p := a.offer(loaded); len(p.Commands) > 0 {
				list = append(list, p)
			}
		}
	}
	return list, nil
}

func (a available) offer(l *gate.Loaded) projection.Pack {
	p := projection.Pack{ID: l.ID, Version: l.Version}
	for _, c := range l.Manifest.Commands {
		e := l.Policy.Verb(c.Key)
		if e == nil {
			continue
		}
		if first, _ := a.refusal(l, c); first != nil {
			continue
		}
		one := projection.Command{Key: c.Key, Summary: c.Summary, Operation: e.Operation, Land: e.Land, Confirm: e.Confirm,
			Project: a.s.Project == "" && slices.Contains(a.Gate.Needs(l, c.Key), "project")}
		if schema, err := c.Args(); err == nil {
			one.Args = schema.Node()
		}
		p.Commands = append(p.Commands, one)
	}
	if len(p.Commands) == 0 {
		return p
	}
	text, err := skillText(l)
	if err != nil {
		return projection.Pack{} // its files have gone in this moment
	}
	read, _ := skill.Parse(text)
	p.Text, p.Lead = text, read.Lead
	return p
}

// skillText is HARNESS.md of an installed pack.
func skillText(l *gate.Loaded) ([]byte, error) {
	root, err := os.OpenRoot(l.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return fs.ReadFile(root.FS(), skill.File)
}

// Tool is the command that a tool's name means (§12.2.2), of an installed pack; "" when there is none. Whether it may
// run is the pipeline's to say.
func (l *Lifecycle) Tool(name string) (packID, verbKey string) {
	l = l.reading()
	ids, err := l.Store.Packs()
	if err != nil {
		return "", ""
	}
	for _, id := range ids {
		if !strings.HasPrefix(name, id) {
			continue
		}
		loaded, refusal := l.Gate.Installed(id)
		if refusal != nil {
			continue
		}
		for _, c := range loaded.Manifest.Commands {
			if manifest.ToolName(id, c.Key) == name {
				return id, c.Key
			}
		}
	}
	return "", ""
}

// Arguments is the schema of an installed command's arguments, for a face that types what it was given.
func (l *Lifecycle) Arguments(packID, verbKey string) *manifest.Schema {
	return l.Gate.Arguments(packID, verbKey)
}
