package lint

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/pack"
	"hcpx/internal/policy"
	"hcpx/internal/protect"
	"hcpx/internal/protocol"
)

// declared are the members of one map of commands or triggers, whatever their values look like: a broken
// entry is declared all the same.
func declared(root *jsondoc.Node, kind string) []jsondoc.Member {
	if n := root.Get(kind); n != nil && n.Kind == jsondoc.Object {
		return n.Members
	}
	return nil
}

// document is a JSON file in which issues have a place.
type document struct {
	file string
	src  []byte
}

func (d document) issue(code protocol.IssueCode, offset int, pointer, message string) protocol.Issue {
	i := protocol.NewIssue(code, d.file, message)
	i.Line, i.Column = jsondoc.Place(d.src, offset)
	i.Pointer = pointer
	return i
}

// issues places many findings of one code in one pass over the text.
func (d document) issues(faults []jsondoc.Fault) []protocol.Issue {
	out := make([]protocol.Issue, len(faults))
	for i, spot := range jsondoc.Spots(d.src, faults) {
		out[i] = protocol.NewIssue(protocol.IssueCode(faults[i].Code), d.file, faults[i].Message)
		out[i].Line, out[i].Column, out[i].Pointer = spot.Line, spot.Column, faults[i].Pointer
	}
	return out
}

// manifest warns of what is missing around the commands: examples (§3.2), the rest of the setup family
// (HCP-12.1-8), the directory's name (§2.2).
func (j *judge) manifest() {
	m := j.Manifest
	var bare []jsondoc.Fault
	for _, c := range m.Commands {
		if list := c.Node.Get("examples"); list == nil || list.Kind == jsondoc.Array && len(list.Items) == 0 {
			bare = append(bare, jsondoc.Fault{Code: "command.no-example", Offset: c.KeyOffset, Pointer: jsondoc.Pointer("verbs", c.Key),
				Message: fmt.Sprintf("The command %q has no example.", c.Key)})
		}
	}
	j.add(document{manifest.File, m.Src}.issues(bare)...)
	var family []*manifest.Command
	for _, c := range m.Commands {
		if c.Key == "setup.status" || c.Key == "setup.apply" || c.Key == "setup.update" {
			family = append(family, c)
		}
	}
	if n := len(family); n > 0 && n < 3 {
		j.add(adapter.CommandPlace(m, family[0]).Issue("setup.partial", "setup.status, setup.apply and setup.update belong together; only some are declared."))
	}
	if id := j.id(); id != "" && j.name != "" && j.name != id {
		where := adapter.Place{Manifest: m, Offset: m.Root.Offset}.Member(m.Root, "id")
		j.add(where.Issue("pack.dir-name", fmt.Sprintf("The directory is named %q and the pack %q.", j.name, id)))
	}
}

// policy holds manifest and policy to the same id (§2.2) and the same commands and triggers (§4.4).
func (j *judge) policy() {
	p := j.Policy
	if id := j.id(); id != "" && p.SurfaceID != "" && p.SurfaceID != id {
		j.add(document{policy.File, p.Src}.issue("policy.id-mismatch", p.Root.Get("surface_id").Offset, "/surface_id",
			fmt.Sprintf("surface_id is %q, but the manifest's id is %q.", p.SurfaceID, id)))
	}
	j.entries("triggers", "trigger")
	if !j.settled() {
		return
	}
	j.entries("verbs", "command")
	for _, e := range p.Verbs {
		j.preview(e)
		j.protected(e)
		j.sentence(e)
	}
}

// entries compares one map of the manifest with the policy's (HCP-14.2-3). A missing entry is placed at
// the map that lacks it.
func (j *judge) entries(kind, word string) {
	p := j.Policy
	if n := j.Manifest.Root.Get(kind); n != nil && n.Kind != jsondoc.Object {
		return
	}
	if n := p.Root.Get(kind); n != nil && n.Kind != jsondoc.Object {
		return
	}
	asked, given := declared(j.Manifest.Root, kind), declared(p.Root, kind)
	have := keys(given)
	place, pointer := p.Root.Offset, ""
	if n := p.Root.Get(kind); n != nil {
		place, pointer = n.Offset, "/"+kind
	}
	var faults []jsondoc.Fault
	for _, m := range asked {
		if !have[m.Key] {
			faults = append(faults, jsondoc.Fault{Code: "policy.missing-entry", Offset: place, Pointer: pointer, Message: fmt.Sprintf("The %s %q has no entry.", word, m.Key)})
		}
	}
	have = keys(asked)
	for _, m := range given {
		if !have[m.Key] {
			faults = append(faults, jsondoc.Fault{Code: "policy.orphan-entry", Offset: m.Offset, Pointer: jsondoc.Pointer(kind, m.Key),
				Message: fmt.Sprintf("The manifest declares no %s %q.", word, m.Key)})
		}
	}
	j.add(document{policy.File, p.Src}.issues(faults)...)
}

func keys(members []jsondoc.Member) map[string]bool {
	out := make(map[string]bool, len(members))
	for _, m := range members {
		out[m.Key] = true
	}
	return out
}

// unfed says which argument a preview needs that the command cannot give it.
func (j *judge) unfed(key, preview string) string {
	command, shows := j.Manifest.Command(key), j.Manifest.Command(preview)
	if command == nil || shows == nil || command.Underived() || shows.Underived() {
		return ""
	}
	given, err := command.Args()
	needed, fault := shows.Args()
	if err != nil || fault != nil {
		return "" // manifest.args-schema
	}
	for _, p := range needed.Properties() {
		if p.Required && given.Property(p.Name) == nil {
			return fmt.Sprintf("needs the argument %q, which %q does not have", p.Name, key)
		}
	}
	return ""
}

// preview must name an ungated read command of the same pack that gets all it needs (§15.3).
func (j *judge) preview(e *policy.Entry) {
	if e.Preview == "" {
		return
	}
	why := ""
	target := j.Policy.Verb(e.Preview)
	switch {
	case !keys(declared(j.Manifest.Root, "verbs"))[e.Preview]:
		why = "is no command of the pack"
	case target != nil && target.Operation == protocol.Write:
		why = "is a write"
	default:
		why = j.unfed(e.Key, e.Preview)
	} // a target without an entry is policy.missing-entry, a gated read policy.confirm-on-read
	if why != "" {
		j.add(document{policy.File, j.Policy.Src}.issue("policy.preview", e.Node.Get("preview").Offset, jsondoc.Pointer("verbs", e.Key, "preview"),
			fmt.Sprintf("The preview %q %s; it must be a read command of the same pack.", e.Preview, why)))
	}
}

// protected must stand on a command that writes the workspace, and mean something of the closed list (§10.2): a
// name that is misspelt would let the command fail, not change it.
func (j *judge) protected(e *policy.Entry) {
	list := e.Node.Get("protected")
	if list == nil || list.Kind != jsondoc.Array {
		return // policy.schema, if anything
	}
	at := jsondoc.Pointer("verbs", e.Key, "protected")
	doc := document{policy.File, j.Policy.Src}
	wrap := j.Manifest.Wrap
	reads := e.Operation == protocol.Read || wrap != nil && wrap.Workspace == "read"
	if len(list.Items) > 0 && (reads || e.Land != "" && e.Land != protocol.Local) {
		j.add(doc.issue("policy.protected", list.Offset, at, fmt.Sprintf("%q writes no workspace, so there is nothing protected that it could change.", e.Key)))
		return
	}
	for i, item := range list.Items {
		if item.Kind == jsondoc.String && !protect.Known(item.Text) {
			j.add(doc.issue("policy.protected", item.Offset, jsondoc.Below(at, strconv.Itoa(i)), fmt.Sprintf("%q means no protected name.", item.Text)))
		}
	}
}

// sentence checks that the question of a confirmation is filled from arguments that exist (§4.5).
func (j *judge) sentence(e *policy.Entry) {
	c := j.Manifest.Command(e.Key)
	if c == nil || e.Message == "" || c.Underived() {
		return
	}
	args, err := c.Args()
	if err != nil || args == nil {
		return // manifest.args-schema
	}
	for _, name := range e.Placeholders() {
		if args.Property(name) == nil {
			j.add(document{policy.File, j.Policy.Src}.issue("policy.schema", e.Node.Get("confirm").Get("message").Offset, jsondoc.Pointer("verbs", e.Key, "confirm", "message"),
				fmt.Sprintf("The message names {%s}, which is no argument of %q.", name, e.Key)))
		}
	}
}

// evals reads evals/*.json: each must name a declared command (HCP-12.4-1). What the skill and the policy
// name is judged by skill.undeclared-command and by §4.4, so that no fault has two codes.
func (j *judge) evals() {
	for _, f := range j.Files {
		if ok, _ := path.Match("evals/*.json", f.Path); !ok || f.Mode == 'l' {
			continue
		}
		if f.Size > pack.MaxRequired {
			j.add(protocol.NewIssue("pack.too-large", f.Path, fmt.Sprintf("An eval has at most %d bytes.", pack.MaxRequired)))
			continue
		}
		src, err := fs.ReadFile(j.FS, f.Path)
		if err != nil {
			j.add(protocol.NewIssue("pack.unreadable", f.Path, "The file changes while it is read."))
			continue
		}
		j.eval(document{f.Path, src})
	}
}

// eval judges one eval case.
func (j *judge) eval(d document) {
	root, faults := jsondoc.Parse(d.src, jsondoc.Limits{})
	for _, f := range faults {
		code := protocol.IssueCode(f.Code)
		if f.Code == jsondoc.TooDeep {
			code = jsondoc.Syntax
		}
		j.add(d.issue(code, f.Offset, f.Pointer, f.Message))
	}
	if root == nil || !j.settled() {
		return
	}
	verb := root.Get("verb")
	switch {
	case verb == nil || verb.Kind != jsondoc.String:
		j.add(d.issue("faces.drift", root.Offset, "", "The eval names no command."))
	case !slices.ContainsFunc(declared(j.Manifest.Root, "verbs"), func(m jsondoc.Member) bool { return m.Key == verb.Text }):
		j.add(d.issue("faces.drift", verb.Offset, "/verb", fmt.Sprintf("The eval runs %q, which the pack does not declare.", verb.Text)))
	}
}
