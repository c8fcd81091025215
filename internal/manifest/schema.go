package manifest

import (
	"strconv"
	"strings"
	"sync"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Schema is a compiled JSON Schema (§3.2). It holds no state of a run and may be used by several at once.
type Schema struct {
	node *jsondoc.Node
	rule *rule
	// derived: the schema came out of an OpenAPI document, where a default tells what the server takes and is never sent.
	derived bool
}

// SchemaError says why args, result or a payload is no schema that is taken; it names the first reason.
type SchemaError struct{ Faults []jsondoc.Fault }

// Error names the first fault by its place.
func (e *SchemaError) Error() string { return e.Faults[0].Pointer + ": " + e.Faults[0].Message }

// schemas are a command's compiled schemas, each made when it is first asked for.
type schemas struct{ args, result lazySchema }

type lazySchema struct {
	once   sync.Once
	schema *Schema
	faults []jsondoc.Fault
}

func (l *lazySchema) get(load func() (*Schema, []jsondoc.Fault)) (*Schema, error) {
	l.once.Do(func() { l.schema, l.faults = load() })
	if len(l.faults) > 0 {
		return nil, &SchemaError{l.faults}
	}
	return l.schema, nil
}

// Args is the schema of the command's arguments. The top object is closed unless it says otherwise; no
// args means no arguments (§3.2).
func (c *Command) Args() (*Schema, error) {
	return c.schemas.args.get(func() (*Schema, []jsondoc.Fault) {
		if c.ArgsNode == nil {
			return c.derivedArgs()
		}
		return loadArgs(c.ArgsNode, c.pointer()+"/args")
	})
}

// Underived says that the arguments are those of an operation that could not be read (§3.6): that is one finding, and
// nothing is held against the schema that is not there.
func (c *Command) Underived() bool {
	return c.ArgsNode == nil && c.Operation != nil && c.Operation() == nil
}

// derivedArgs is the schema that the command's operation brings (§3.6), which follows the standard: it is closed where it
// says so. Without one the command takes no arguments.
func (c *Command) derivedArgs() (*Schema, []jsondoc.Fault) {
	var n *jsondoc.Node
	if c.Operation != nil {
		n = c.Operation().Get("args")
	}
	if n == nil {
		return noArguments(), nil
	}
	r, faults := compile(n, "")
	if len(faults) > 0 { // its places are in no file that anybody wrote
		at := c.Node.Get("operation_id")
		if at == nil {
			at = c.Node
		}
		return nil, []jsondoc.Fault{{Code: badSchema, Offset: at.Offset, Pointer: c.pointer() + "/operation_id",
			Message: "The schema that the operation's parameters make is none that is taken: " + lowerFirst(faults[0].Message)}}
	}
	return &Schema{node: n, rule: r, derived: true}, nil
}

// Result is the schema of the command's result; nil when it declares none (§3.2).
func (c *Command) Result() (*Schema, error) {
	return c.schemas.result.get(func() (*Schema, []jsondoc.Fault) {
		if c.ResultNode == nil {
			return nil, nil
		}
		return load(c.ResultNode, c.pointer()+"/result")
	})
}

func (c *Command) pointer() string { return jsondoc.Pointer("verbs", c.Key) }

func load(n *jsondoc.Node, pointer string) (*Schema, []jsondoc.Fault) {
	r, faults := compile(n, pointer)
	if len(faults) > 0 {
		return nil, faults
	}
	return &Schema{node: n, rule: r}, nil
}

func noArguments() *Schema {
	n := jsondoc.Obj(jsondoc.Member{Key: "type", Value: jsondoc.Str("object")}, jsondoc.Member{Key: "additionalProperties", Value: jsondoc.Boolean(false)})
	return &Schema{node: n, rule: &rule{node: n, types: kindObject, object: &objectRule{max: -1, additional: &rule{verdict: never}}}}
}

// loadArgs loads a schema of arguments: it takes objects, and its top is closed (§3.2).
func loadArgs(n *jsondoc.Node, pointer string) (*Schema, []jsondoc.Fault) {
	s, faults := load(n, pointer)
	if len(faults) > 0 {
		return nil, faults
	}
	if t := s.rule.types; t != 0 && t != kindObject || s.rule.verdict == never {
		at, pointer := n, pointer
		if t := n.Get("type"); t != nil {
			at, pointer = t, pointer+"/type"
		}
		return nil, []jsondoc.Fault{{Code: badSchema, Offset: at.Offset, Pointer: pointer, Message: "Arguments are an object: \"type\" is \"object\"."}}
	}
	s.rule = closed(s.rule)
	return s, nil
}

// closed is the rule with its top object closed, unless it says itself what other members may be. What
// allOf, a reference and the like declare counts as declared.
func closed(r *rule) *rule {
	if r.object != nil && (r.object.additional != nil || r.object.unevaluated != nil) {
		return r
	}
	top, object := *r, objectRule{max: -1}
	if r.object != nil {
		object = *r.object
	}
	top.types, top.verdict = kindObject, ask
	if len(r.inPlace()) > 0 {
		object.unevaluated = &rule{verdict: never}
	} else {
		object.additional = &rule{verdict: never}
	}
	top.object = &object
	return &top
}

// Node is the schema as it was written.
func (s *Schema) Node() *jsondoc.Node { return s.node }

// Validate finds every way in which v misses the schema, sorted by pointer and message (§6.3 step 5).
// Pointers start at v.
func (s *Schema) Validate(v *jsondoc.Node) []protocol.Violation {
	if v == nil {
		v = jsondoc.NullNode()
	}
	return validate(s.rule, v)
}

// Defaults is args with the defaults of absent members filled in, at the top and in the properties of
// nested objects that are there (§3.2).
func (s *Schema) Defaults(args *jsondoc.Node) *jsondoc.Node {
	if args == nil {
		args = jsondoc.Obj()
	}
	if s.derived {
		return args
	}
	left := maxDefaults
	return s.rule.defaults(args, &left)
}

// maxDefaults bounds what is filled in: a schema that holds itself may have defaults without end.
const maxDefaults = 1000

func (r *rule) defaults(v *jsondoc.Node, left *int) *jsondoc.Node {
	if v.Kind != jsondoc.Object {
		return v
	}
	for _, p := range r.declared() {
		value := v.Get(p.name)
		if value == nil {
			if value = p.rule.initial(); value == nil || *left == 0 {
				continue
			}
			*left--
		}
		if filled := p.rule.defaults(value, left); filled != v.Get(p.name) {
			v = v.With(p.name, filled)
		}
	}
	return v
}

// initial is the default of a value that is absent; a reference may bring it.
func (r *rule) initial() *jsondoc.Node {
	for range maxHops {
		if d := r.node.Get("default"); d != nil || r.logic == nil || r.logic.ref == nil {
			return d
		}
		r = r.logic.ref
	}
	return nil
}

// maxHops is how many references in a row are followed to describe a value.
const maxHops = 32

// declared lists the properties of an object in source order, with those that references and allOf bring.
func (r *rule) declared() []namedRule {
	if r.logic == nil {
		if r.object == nil {
			return nil
		}
		return r.object.properties
	}
	var out []namedRule
	have := map[string]bool{}
	var gather func(r *rule, hops int)
	gather = func(r *rule, hops int) {
		if r.object != nil {
			for _, p := range r.object.properties {
				if !have[p.name] {
					have[p.name] = true
					out = append(out, p)
				}
			}
		}
		if r.logic == nil || hops == 0 {
			return
		}
		if r.logic.ref != nil {
			gather(r.logic.ref, hops-1)
		}
		for _, one := range r.logic.allOf {
			gather(one, hops-1)
		}
	}
	gather(r, maxHops)
	return out
}

// Check compiles all schemas of the manifest and reports what is wrong with them, and with examples that
// their own schema refuses (§3.2, §7.1).
func (m *Manifest) Check() []protocol.Issue {
	var faults []jsondoc.Fault
	for _, c := range m.Commands {
		faults = append(faults, c.check()...)
	}
	for _, t := range m.Triggers {
		if payload := t.Node.Get("payload"); payload != nil {
			_, bad := load(payload, jsondoc.Pointer("triggers", t.Key, "payload"))
			faults = append(faults, bad...)
		}
	}
	return issues(m.Src, faults)
}

func (c *Command) check() []jsondoc.Fault {
	var faults []jsondoc.Fault
	args, err := c.Args()
	faults = append(faults, faultsOf(err)...)
	if args != nil && args.derived {
		at := c.Node.Get("operation_id")
		nameFaults(args.node.Get("properties"), func(_ jsondoc.Member, code, message string) {
			faults = append(faults, jsondoc.Fault{Code: code, Offset: at.Offset, Pointer: c.pointer() + "/operation_id", Message: message})
		})
	}
	_, err = c.Result()
	faults = append(faults, faultsOf(err)...)
	if args == nil || c.Underived() {
		return faults
	}
	for i, example := range items(c.Node.Get("examples")) {
		value, at := example.Get("args"), c.pointer()+"/examples/"+strconv.Itoa(i)
		if value == nil || value.Kind != jsondoc.Object {
			continue // Decode has reported it, or there are none
		}
		if bad := args.Validate(args.Defaults(value)); len(bad) > 0 {
			faults = append(faults, exampleFault(value, at+"/args", bad[0]))
		}
	}
	return faults
}

// exampleFault places the violation at the value in the example that it speaks of.
func exampleFault(args *jsondoc.Node, pointer string, v protocol.Violation) jsondoc.Fault {
	offset := args.Offset
	if at := args.Lookup(v.Pointer); at != nil {
		offset = at.Offset
	}
	return jsondoc.Fault{Code: "manifest.schema", Offset: offset, Pointer: pointer + v.Pointer,
		Message: "The example does not fit the command's own args: " + lowerFirst(v.Message)}
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func faultsOf(err error) []jsondoc.Fault {
	if e, ok := err.(*SchemaError); ok {
		return e.Faults
	}
	return nil
}

func items(n *jsondoc.Node) []*jsondoc.Node {
	if n == nil {
		return nil
	}
	return n.Items
}
