package manifest

import (
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

type schemas struct{}

type Schema struct{}

type Property struct {
	Name        string
	Node        *jsondoc.Node
	Types       []string
	Required    bool
	Enum        []*jsondoc.Node
	Items       *Property
	Props       []*Property
	AllowDash   bool
	Description string
}

func (c *Command) Args() (*Schema, error)                       { return nil, nil }
func (c *Command) Result() (*Schema, error)                     { return nil, nil }
func (s *Schema) Defaults(args *jsondoc.Node) *jsondoc.Node     { return args }
func (s *Schema) Validate(v *jsondoc.Node) []protocol.Violation { return nil }
func (s *Schema) Property(name string) *Property                { return nil }
func (s *Schema) Properties() []*Property                       { return nil }
func (s *Schema) Example() *jsondoc.Node                        { return nil }
func (s *Schema) Node() *jsondoc.Node                           { return nil }
func (m *Manifest) Check() []protocol.Issue                     { return nil }
