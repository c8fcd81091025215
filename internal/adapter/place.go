package adapter

import (
	"strconv"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Place is a value in surface.json: where it stands and by which pointer it is named.
type Place struct {
	Manifest *manifest.Manifest
	Offset   int
	Pointer  string
}

// CommandPlace is the place of a command's entry.
func CommandPlace(m *manifest.Manifest, c *manifest.Command) Place {
	return Place{Manifest: m, Offset: c.KeyOffset, Pointer: jsondoc.Pointer("verbs", c.Key)}
}

// Member is the place of the object's member value, or the place of the object when it lacks the member.
func (p Place) Member(object *jsondoc.Node, key string) Place {
	if v := object.Get(key); v != nil {
		return p.below(v, key)
	}
	return p
}

// Key is the place of the object's member, at its key.
func (p Place) Key(object *jsondoc.Node, key string) Place {
	at := p.Member(object, key)
	if object != nil {
		for _, m := range object.Members {
			if m.Key == key {
				at.Offset = m.Offset
			}
		}
	}
	return at
}

// Item is the place of the array's item i.
func (p Place) Item(array *jsondoc.Node, i int) Place {
	return p.below(array.Items[i], strconv.Itoa(i))
}

func (p Place) below(v *jsondoc.Node, token string) Place {
	return Place{Manifest: p.Manifest, Offset: v.Offset, Pointer: jsondoc.Below(p.Pointer, token)}
}

// Issue is a finding of lint at the place (§14.2).
func (p Place) Issue(code protocol.IssueCode, message string) protocol.Issue {
	i := protocol.NewIssue(code, manifest.File, message)
	i.Line, i.Column = p.Manifest.Place(p.Offset)
	i.Pointer = p.Pointer
	return i
}
