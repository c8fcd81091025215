// Package lint judges packs before they are installed (§14.2): it asks each room for what it knows of its
// own file and adds the rules that stand between files. It changes nothing, reads nothing outside the pack,
// reports all issues and not the first, each with its exact place.
//
// Nouns: Source (one directory), Options (what surrounds the call), protocol.Issue (one finding). The packs
// of one call see each other, and those that are installed.
//
// Who says what: pack.Load the files and what decoding manifest and policy finds, manifest.Check the
// schemas, the adapters their commands and blocks, skill.Check the text. Here stand the rules of §4.4, §2.2,
// §12.4 and the warnings that need the whole pack.
package lint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hcpx/internal/adapter"
	"hcpx/internal/adapter/composite"
	"hcpx/internal/adapter/openapi"
	"hcpx/internal/adapter/wrap"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/pack"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/skill"
)

// Source is one pack to judge.
type Source struct {
	Dir  string // as it is shown in issues when there are several
	FS   fs.FS
	Name string // the directory's own name, "" when it has none
}

// Options are what surrounds a call.
type Options struct {
	Installed       func(id string) *pack.Pack // nil, or nil for an id that is not installed
	BootstrapDigest string                     // the one digest with which hcp-cli may have its id (§11.4)
	Limits          pack.Limits
	Machine         composite.Machine // judges the expressions of composites; needed where there are any
}

// Open makes a Source of a directory. Links are followed inside of it only. Its handle is closed when the
// FS is collected.
func Open(dir string) (Source, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Source{}, err
	}
	if info, err := os.Stat(dir); err != nil {
		return Source{}, err
	} else if !info.IsDir() { // opening a fifo would wait for its writer
		return Source{}, &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Source{}, err
	}
	return Source{Dir: dir, FS: root.FS(), Name: filepath.Base(abs)}, nil
}

// Run judges the sources together and returns all issues in order (HCP-14.2-7): each violation of §14.2 is
// an error (HCP-14.3-1). The refusal says that nothing was judged, since there are expressions and no machine for them.
func Run(sources []Source, o Options) ([]protocol.Issue, *protocol.Error) {
	s := surroundings{packs: map[string]*pack.Pack{}, installed: o.Installed}
	var judges []*judge
	for _, src := range sources {
		p, issues := pack.Load(src.FS, o.Limits)
		if p.ID == manifest.Bootstrap && o.BootstrapDigest != "" && pack.Digest(p.Files) == o.BootstrapDigest {
			issues = manifest.Lift(issues)
		}
		if _, taken := s.packs[p.ID]; !taken && p.Manifest != nil {
			s.packs[p.ID] = p
		}
		judges = append(judges, &judge{Pack: p, name: src.Name, issues: issues})
	}
	if err := expressions(judges, o.Machine); err != nil {
		return nil, err
	}
	var all []protocol.Issue
	for i, j := range judges {
		j.run(s)
		for _, issue := range j.issues {
			if len(sources) > 1 {
				issue.Dir = sources[i].Dir
			}
			all = append(all, issue)
		}
	}
	protocol.SortIssues(all)
	return slices.Compact(all), nil
}

// expressions has all jq of the call judged, at once (§3.5).
func expressions(judges []*judge, m composite.Machine) *protocol.Error {
	var texts []string
	var found []func(error)
	for _, j := range judges {
		if j.Manifest == nil {
			continue
		}
		for _, e := range composite.Expressions(j.Manifest) {
			texts = append(texts, e.Text)
			found = append(found, func(err error) { j.add(e.Issue(err)) })
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if m == nil {
		return protocol.Fail(protocol.ComponentMissing, "There is nothing here that reads the expressions of a composite.").WithHint("hcpx doctor")
	}
	faults, err := m.Check(context.Background(), texts)
	if err != nil {
		return err
	}
	for i, fault := range faults {
		if fault != nil {
			found[i](fault)
		}
	}
	return nil
}

// surroundings are the packs that steps may call: those of the call before those that are installed.
type surroundings struct {
	packs     map[string]*pack.Pack
	installed func(id string) *pack.Pack
}

// lookup is composite's view of a pack; nil when it is not known.
func (s surroundings) lookup(id string) (*manifest.Manifest, *policy.Policy) {
	p := s.packs[id]
	if p == nil && s.installed != nil {
		p = s.installed(id)
	}
	if p == nil {
		return nil, nil
	}
	return p.Manifest, p.Policy
}

// judge gathers the issues of one pack.
type judge struct {
	*pack.Pack
	name   string
	issues []protocol.Issue
}

func (j *judge) add(issues ...protocol.Issue) { j.issues = append(j.issues, issues...) }

// run asks the rooms and applies the rules between files.
func (j *judge) run(s surroundings) {
	if j.Manifest != nil {
		j.adapters(s) // the document of an openapi pack brings schemas
		j.add(j.Manifest.Check()...)
		j.manifest()
	}
	if j.Manifest != nil && j.Policy != nil {
		j.policy()
	}
	if j.Skill != nil {
		j.add(skill.Check(j.Skill, j.names())...)
	}
	j.evals()
}

// adapters compiles each command and checks the adapter's block.
func (j *judge) adapters(s surroundings) {
	var kind adapter.Adapter
	switch j.Manifest.Adapter {
	case manifest.Wrap:
		w := wrap.New()
		j.add(w.CheckBlock(j.Manifest, j.FS)...)
		kind = w
	case manifest.Composite:
		j.add(composite.Check(j.Manifest, func(id string) (*manifest.Manifest, *policy.Policy) {
			if id == j.ID {
				return j.Manifest, j.Policy
			}
			return s.lookup(id)
		})...)
		kind = composite.New(nil)
	case manifest.OpenAPI:
		o := openapi.New(openapi.Options{})
		summary, issues := o.Summarize(j.Manifest, j.FS) // a form at least, so that Adopt tells which commands have none
		j.add(issues...)
		o.Adopt(j.Manifest, summary)
		kind = o
	default:
		return
	}
	for _, c := range j.Manifest.Commands {
		_, issues := kind.Compile(j.Manifest, c)
		j.add(issues...)
	}
}

// id is the pack's id as far as it is settled: a wrong one in the manifest is one issue and not the cause
// of others.
func (j *judge) id() string {
	if manifest.ValidID(j.ID) && !manifest.Reserved(j.ID) || j.Policy == nil || j.ID == manifest.Bootstrap {
		return j.ID
	}
	return j.Policy.SurfaceID
}

// settled says whether it is known which commands the manifest declares. Where it is not, that is one issue
// of the manifest and not one more on each other face.
func (j *judge) settled() bool {
	if j.Manifest == nil {
		return false
	}
	verbs := j.Manifest.Root.Get("verbs")
	if verbs == nil {
		return j.Manifest.Adapter == manifest.SenseOnly
	}
	return verbs.Kind == jsondoc.Object
}

// names are what the skill may speak of; its commands are not judged while they are not settled.
func (j *judge) names() skill.Names {
	if !j.settled() {
		return skill.Names{}
	}
	n := skill.Names{Pack: j.id()}
	for _, m := range declared(j.Manifest.Root, "verbs") {
		n.Verbs = append(n.Verbs, m.Key)
	}
	for _, m := range declared(j.Manifest.Root, "triggers") {
		n.Triggers = append(n.Triggers, m.Key)
	}
	return n
}
