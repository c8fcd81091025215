package projection

import (
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Tool is how a model sees something that it can call.
type Tool struct {
	Name, Description string
	Input, Output     *jsondoc.Node // JSON Schema
	ReadOnly          bool
	Destructive       bool
	Idempotent        bool
	Pack              string // the exported group (§12.5.2)
}

// The names of the two tools of the single shape (§12.2.1, §12.2.3), and the arguments that a command's tool has beside
// the command's own; no command may have one that starts alike.
const (
	One       = "hcp"
	ReadSkill = "hcp__read_skill"
	Confirm   = "hcp_confirm"
	Project   = "hcp_project"
)

// Tools are the tools of a shape. Those of the single shape are constant: activating a pack changes no tool (HCP-12.2-1).
func Tools(packs []Pack, shape Shape) []Tool {
	if shape == Single {
		return []Tool{oneTool(), readTool()}
	}
	list := []Tool{readTool()}
	for _, p := range packs {
		for _, c := range p.Commands {
			list = append(list, commandTool(p, c))
		}
	}
	return list
}

func oneTool() Tool {
	return Tool{
		Name: One,
		Description: "Run one command of an activated pack. pack_id and verb_key name it, args are its arguments, as hcp__read_skill shows them. " +
			"The answer is {ok, pack_id, verb_key, result} or, with ok false, {error: {code, message, hint, details}}. " +
			"A command marked confirm needs a person: where the answer is confirm_required, repeat the call once he has approved it, with confirm = error.details.approval_id.",
		Input: object(schema("pack_id", "string", "Which pack, such as git."), schema("verb_key", "string", "Which of its commands, such as log or branch.create."),
			schema("args", "object", "The command's arguments, an object; {} when it takes none."),
			member("confirm", obj("type", arr("boolean", "string"), "description", jsondoc.Str("The approval_id that a person approved; true only where your own word counts."))),
			schema("project", "string", "The project, for commands of the land brain.")).With("required", arr("pack_id", "verb_key")),
		Output: Envelope(), Destructive: true,
	}
}

func readTool() Tool {
	return Tool{
		Name: ReadSkill,
		Description: "Read the skill of a pack: what it is for, its commands, and the arguments of each. Without pack_id: the activated packs, a line each. " +
			"Read it before the first call of a pack.",
		Input:    object(schema("pack_id", "string", "Which pack; left out, all are listed.")),
		ReadOnly: true, Idempotent: true,
	}
}

// commandTool is the tool of one command (HCP-12.2-2, HCP-12.2-4): its words begin with the marks.
func commandTool(p Pack, c Command) Tool {
	read := c.Operation == protocol.Read
	return Tool{
		Name: manifest.ToolName(p.ID, c.Key), Description: c.Marks() + " " + c.Summary, Pack: p.ID,
		Input: arguments(c), Output: Envelope(), ReadOnly: read, Idempotent: read, Destructive: !read && c.Confirm,
	}
}

// own is the schema of a command's arguments.
func own(c Command) *jsondoc.Node {
	if c.Args == nil {
		return object()
	}
	return c.Args
}

// arguments is the command's own schema, an object in any case, with what the tool adds to it.
func arguments(c Command) *jsondoc.Node {
	n := own(c)
	if t := n.Get("type"); t == nil || t.Kind != jsondoc.String {
		n = n.With("type", jsondoc.Str("object"))
	}
	properties := n.Get("properties")
	if properties == nil {
		properties = jsondoc.Obj()
	}
	if c.Confirm {
		properties = properties.With(Confirm, obj("type", arr("boolean", "string"), "description", jsondoc.Str("Asks a person. The approval_id of a confirm_required answer once he has approved; true only where your own word counts.")))
	}
	if c.Project {
		properties = properties.With(Project, obj("type", jsondoc.Str("string"), "description", jsondoc.Str("The project that this is about.")))
	}
	return n.With("properties", properties)
}

// Envelope is the schema of the one answer (§6.2).
func Envelope() *jsondoc.Node {
	fault := object(schema("code", "string", ""), schema("message", "string", ""), schema("step", "integer", ""), schema("hint", "string", ""), schema("details", "object", "")).
		With("required", arr("code", "message"))
	return object(schema("ok", "boolean", ""), schema("pack_id", "string", ""), schema("verb_key", "string", ""), member("result", jsondoc.Obj()), member("error", fault)).
		With("required", arr("ok", "pack_id", "verb_key"))
}

func member(key string, n *jsondoc.Node) jsondoc.Member { return jsondoc.Member{Key: key, Value: n} }

func schema(key, typ, description string) jsondoc.Member {
	n := obj("type", jsondoc.Str(typ))
	if description != "" {
		n = n.With("description", jsondoc.Str(description))
	}
	return member(key, n)
}

func object(properties ...jsondoc.Member) *jsondoc.Node {
	return obj("type", jsondoc.Str("object"), "properties", jsondoc.Obj(properties...), "additionalProperties", jsondoc.Boolean(false))
}

// obj makes an object of keys and values in turn.
func obj(pairs ...any) *jsondoc.Node {
	n := jsondoc.Obj()
	for i := 0; i+1 < len(pairs); i += 2 {
		n = n.With(pairs[i].(string), pairs[i+1].(*jsondoc.Node))
	}
	return n
}

func arr(words ...string) *jsondoc.Node {
	list := make([]*jsondoc.Node, len(words))
	for i, w := range words {
		list[i] = jsondoc.Str(w)
	}
	return jsondoc.Arr(list...)
}
