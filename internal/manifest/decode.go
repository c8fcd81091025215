package manifest

import (
	"slices"
	"strings"
	"sync"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// The members that are known, by the object that holds them. All others are ignored with a warning
// (§13.2), unless must_understand names them (§2.6).
var (
	rootMembers    = []string{"hcp", "id", "version", "name", "summary", "plane", "family", "adapter", "wrap", "openapi", "binding", "verbs", "triggers", "must_understand"}
	hcpMembers     = []string{"version"}
	wrapMembers    = []string{"bin", "uses", "reads", "env", "network", "workspace", "isolation", "probe", "allowedSubcommands", "maxArgv"}
	networkMembers = []string{"hosts", "operator_hosts"}
	openapiMembers = []string{"document", "server"}
	bindingMembers = []string{"mode", "modes", "hub", "source", "inject"}
	injectMembers  = []string{"env", "file"}
	commandMembers = []string{"summary", "args", "result", "timeout", "examples", "must_understand"}
	exampleMembers = []string{"args"}
	triggerMembers = []string{"summary", "payload", "source"}
	// The adapters read these; they are here so that must_understand may name them (§2.6).
	templateMembers = []string{"if", "then", "else", "each", "id", "pack", "verb", "value", "when"}
	sourceMembers   = []string{"kind", "verify", "header", "id", "map", "argv", "path"}
)

// adapterMembers are what a command of each adapter has beside commandMembers.
func adapterMembers(adapter string) []string {
	switch adapter {
	case Wrap:
		return []string{"argv", "stdin", "output", "ok_exit"}
	case Composite:
		return []string{"steps", "output"}
	case OpenAPI:
		return []string{"operation_id"}
	default: // the adapter is not known, and with it neither are they
		return []string{"argv", "stdin", "output", "ok_exit", "steps", "operation_id"}
	}
}

// known says whether any object of the manifest has a member of that name (§2.6).
func known(name string) bool {
	for _, list := range [][]string{rootMembers, hcpMembers, wrapMembers, networkMembers, openapiMembers, bindingMembers, injectMembers,
		commandMembers, exampleMembers, triggerMembers, sourceMembers, bindingSourceMembers(), templateMembers, adapterMembers("")} {
		if slices.Contains(list, name) {
			return true
		}
	}
	return false
}

// Decode reads surface.json and reports everything that is wrong with it, each with its place (§3, §14.2).
// The Manifest is nil only when src is not one JSON object. No schema is compiled here; Check does that.
func Decode(src []byte) (*Manifest, []protocol.Issue) {
	shape := jsondoc.Shape{Form: "manifest.schema", Unknown: "manifest.unknown-field"}
	root, faults := jsondoc.Parse(src, jsondoc.Limits{})
	shape.Faults = faults
	if root == nil {
		return nil, issues(src, shape.Faults)
	}
	if root.Kind != jsondoc.Object {
		shape.Report(shape.Form, root.Offset, "", "A manifest is one JSON object.")
		return nil, issues(src, shape.Faults)
	}
	m := &Manifest{Root: root, Src: src, index: sync.OnceValue(func() *jsondoc.Places { return jsondoc.NewPlaces(src) })}
	scope := &jsondoc.Scope{}
	r := reader{m: m, at: jsondoc.Cursor{Node: root, Scope: scope, Shape: &shape}}
	scope.Must = r.at.Strings("must_understand")
	r.identity()
	r.adapter()
	r.binding()
	r.commands()
	r.triggers()
	r.at.Close(rootMembers)
	scope.Settle(known)
	m.Unmet = scope.Unmet
	return m, issues(src, shape.Faults)
}

// reader fills one Manifest from its root.
type reader struct {
	m  *Manifest
	at jsondoc.Cursor
}

// identity reads what the pack is: §2.2, §2.5, §3, §13.2.
func (r reader) identity() {
	m, at := r.m, r.at
	if at.Required("hcp") {
		r.hcpVersion()
	}
	if at.Required("id") {
		m.ID, _ = at.Text("id")
		switch {
		case at.Node.Get("id").Kind != jsondoc.String:
		case !ValidID(m.ID):
			at.AtValue("id", "manifest.id", "%s is no pack id: words of a-z and 0-9 joined by single dashes, starting with a letter, at most 64 characters.", jsondoc.Quote(m.ID))
		case Reserved(m.ID):
			at.AtValue("id", "manifest.reserved-id", "The id %s is reserved for the runtime.", jsondoc.Quote(m.ID))
		}
	}
	if at.Required("version") {
		v, ok := at.Text("version")
		if ok && !validVersion(v) {
			at.AtValue("version", "manifest.schema", "%s is no SemVer 2.0 version such as 1.2.0.", jsondoc.Quote(v))
		}
		m.Version = v
	}
	m.Name = at.Line("name", 80)
	if at.Required("summary") {
		m.Summary = at.Line("summary", 200)
	}
	m.Plane = at.Choice("plane", "runtime", "control")
	m.Family = at.Line("family", 64)
}

func (r reader) hcpVersion() {
	hcp, ok := r.at.Object("hcp")
	if !ok {
		return
	}
	hcp.Close(hcpMembers)
	if !hcp.Required("version") {
		return
	}
	v, ok := hcp.Text("version")
	if ok && !supported(v) {
		hcp.AtValue("version", "manifest.version", "HCP version %s is not supported; this runtime takes 1.x.", jsondoc.Quote(v))
	}
	r.m.HCPVersion = v
}

// triggers reads the stimuli (§7.1).
func (r reader) triggers() {
	all, ok := r.at.Object("triggers")
	if r.m.Adapter == SenseOnly && !r.at.Node.Has("triggers") {
		r.at.AtSelf("manifest.schema", "A sense_only pack has triggers.")
	}
	if !ok {
		return
	}
	if r.m.Adapter == SenseOnly && len(all.Node.Members) == 0 {
		r.at.AtValue("triggers", "manifest.schema", "A sense_only pack has at least one trigger.")
	}
	all.Objects(func(m jsondoc.Member, at jsondoc.Cursor) { r.trigger(m, at) })
}

// issues gives the faults their lines and columns and the catalogue's severity and section.
func issues(src []byte, faults []jsondoc.Fault) []protocol.Issue {
	if len(faults) == 0 {
		return nil
	}
	out := make([]protocol.Issue, len(faults))
	for i, spot := range jsondoc.Spots(src, faults) {
		f := faults[i]
		out[i] = protocol.NewIssue(issueCode(f.Code), File, f.Message)
		out[i].Line, out[i].Column, out[i].Pointer = spot.Line, spot.Column, f.Pointer
	}
	protocol.SortIssues(out)
	return out
}

// issueCode names a fault in lint's words, which know no code of their own for size and depth.
func issueCode(code string) protocol.IssueCode {
	switch code {
	case jsondoc.TooLarge:
		return "pack.too-large"
	case jsondoc.TooDeep:
		return jsondoc.Syntax
	default:
		return protocol.IssueCode(code)
	}
}

// Lift drops the finding that hcp-cli is a reserved id, for the one pack that may have it (§2.2).
func Lift(found []protocol.Issue) []protocol.Issue {
	return slices.DeleteFunc(found, func(i protocol.Issue) bool {
		return i.Code == "manifest.reserved-id" && strings.Contains(i.Message, jsondoc.Quote(Bootstrap))
	})
}
