package pipeline

import (
	"context"
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// Plan is §15.1: steps 1 to 6 and 8 without minting or running. ok is false exactly where steps 1 to 5 or
// 8 would refuse; a missing confirmation is shown, not refused.
func (p *Pipeline) Plan(ctx context.Context, s protocol.Session, envelope []byte) (res protocol.Result) {
	r := p.newRun(ctx, s)
	defer r.recovered(&res)
	if err := r.admit(envelope); err != nil {
		return r.denied(err)
	}
	if err := r.at(6, r.weigh); err != nil {
		return r.denied(err)
	}
	if err := r.at(8, r.look); err != nil {
		return r.denied(err)
	}
	if err := r.at(8, r.guardable); err != nil {
		return r.denied(err)
	}
	plan := r.plan()
	if r.recorded != nil { // exec would give that run's answer
		plan = plan.With("recorded", jsondoc.Str(r.recordedBy))
	}
	res = protocol.Result{OK: true, PackID: r.req.PackID, VerbKey: r.req.VerbKey, Result: raw(plan)}
	if r.confirm.needed { // a person's yes is to this and nothing else
		res.Exact = r.exact()
	}
	return res
}

// privateHome stands in a plan for the directory that exists only during the run.
const privateHome = "<private>"

// plan is the child's whole world as steps 1 to 8 found it. Its hash stands in the intent, so that an audit
// can be held against a plan.
func (r *run) plan() *jsondoc.Node {
	members := []jsondoc.Member{{Key: "argv", Value: stringsNode(r.call.Argv)}}
	if r.call.Request != nil {
		members = []jsondoc.Member{{Key: "request", Value: requestNode(r.call.Request)}, {Key: "limits", Value: object("wall", jsondoc.Str(r.requestTime().String()), "output", number(uint64(max(r.p.OutputCap, 0))))}}
	}
	if r.world != nil && r.world.Spec != nil {
		members = append(members, r.worldPlan(r.world.Spec)...)
	}
	if steps := r.verb.Adapter.Steps(); len(steps) > 0 {
		var list []*jsondoc.Node
		for _, s := range steps {
			list = append(list, object("id", jsondoc.Str(s.ID), "pack_id", jsondoc.Str(s.Pack), "verb_key", jsondoc.Str(s.Verb)))
		}
		members = append(members, jsondoc.Member{Key: "steps", Value: jsondoc.Arr(list...)})
	}
	confirm := object("needed", jsondoc.Boolean(r.confirm.needed), "given", jsondoc.Boolean(r.confirm.given), "by", orNull(r.confirm.by))
	if r.confirm.message != "" {
		confirm = confirm.With("message", jsondoc.Str(r.confirm.message))
	}
	members = append(members, jsondoc.Member{Key: "confirm", Value: confirm}, jsondoc.Member{Key: "grant", Value: stringsNode(r.decision.Path)})
	return jsondoc.Obj(members...)
}

// worldPlan shows what the child may touch: the sandbox itself says it, from the list that it builds the jail of.
// Outside the sandbox (§10.3) that is whatever the user may.
func (r *run) worldPlan(spec *sandbox.Spec) []jsondoc.Member {
	jail := r.p.Gate.Sandbox.Jail(spec, privateHome)
	everything := []string{"/"}
	declared, isolation := access{reads: everything, writes: everything, executes: everything}, "native-local"
	network := object("mode", jsondoc.Str("full"), "hosts", stringsNode(nil))
	if !spec.Native {
		declared, isolation = accessOf(jail.Declared), "sandbox"
		network = object("mode", jsondoc.Str(spec.Network.Mode), "hosts", stringsNode(spec.Network.Hosts))
	}
	members := []jsondoc.Member{
		{Key: "cwd", Value: jsondoc.Str(spec.Dir)},
		{Key: "env", Value: stringsNode(r.envNames(spec))},
		{Key: "reads", Value: stringsNode(declared.reads)},
		{Key: "writes", Value: stringsNode(declared.writes)},
		{Key: "executes", Value: stringsNode(declared.executes)},
		{Key: "network", Value: network},
		{Key: "limits", Value: limitsPlan(spec)},
		{Key: "isolation", Value: jsondoc.Str(isolation)},
	}
	if r.guards() {
		members = append(members, jsondoc.Member{Key: "protected", Value: r.guardPlan()})
	}
	if len(r.world.Withheld) > 0 {
		members = append(members, jsondoc.Member{Key: "withheld", Value: stringsNode(r.world.Withheld)})
	}
	if !spec.Native {
		members = append(members, jsondoc.Member{Key: "private", Value: accessOf(jail.Own).node()}, jsondoc.Member{Key: "base", Value: accessOf(jail.Base).node()})
	}
	return append(members, jsondoc.Member{Key: "backend", Value: jsondoc.Str(jail.Backend)}, jsondoc.Member{Key: "degraded", Value: stringsNode(jail.Degraded)})
}

// limitsPlan are the limits that hold; what a run outside the sandbox does not have is not there (§10.3).
func limitsPlan(spec *sandbox.Spec) *jsondoc.Node {
	l := spec.Limits.Held()
	n := object("wall", jsondoc.Str(l.Wall.String()), "output", number(uint64(max(l.Output, 0))))
	if !spec.Native {
		n = object("wall", jsondoc.Str(l.Wall.String()), "cpu", jsondoc.Str(l.CPU.String()), "files", number(l.Files), "file_size", number(l.FileSize),
			"output", number(uint64(max(l.Output, 0))), "memory", number(l.Memory), "processes", number(uint64(max(l.Processes, 0))))
	}
	return n.With("note", jsondoc.Str(sandbox.LimitsNote(spec.Native)))
}

// access is a list of grants as plan shows it: what may be written or executed may be read too, and stands once.
type access struct{ reads, writes, executes, devices []string }

// accessOf sorts grants; a tree that holds programs has a slash.
func accessOf(grants []sandbox.Access) access {
	var a access
	for _, g := range grants {
		path := g.Path
		if g.Execute && g.Tree {
			path = strings.TrimSuffix(path, "/") + "/"
		}
		switch {
		case g.Device:
			a.devices = append(a.devices, path)
		case g.Execute:
			a.executes = append(a.executes, path)
		case !g.Write:
			a.reads = append(a.reads, path)
		}
		if g.Write {
			a.writes = append(a.writes, path)
		}
	}
	return a
}

func (a access) node() *jsondoc.Node {
	n := object("reads", stringsNode(a.reads), "writes", stringsNode(a.writes), "executes", stringsNode(a.executes))
	if len(a.devices) > 0 {
		n = n.With("devices", stringsNode(a.devices))
	}
	return n
}

// envNames are the names of the child's environment: what every command gets, the manifest's, and those
// that the binding will inject. Values are never shown.
func (r *run) envNames(spec *sandbox.Spec) []string {
	var names []string
	for _, kv := range r.p.Gate.Sandbox.Environ(spec, privateHome) {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	for _, e := range r.pack.Manifest.Binding.Inject {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}
