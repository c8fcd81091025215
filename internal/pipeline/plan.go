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
	r.weigh()
	if err := r.at(8, r.look); err != nil {
		return r.denied(err)
	}
	return protocol.Result{OK: true, PackID: r.req.PackID, VerbKey: r.req.VerbKey, Result: raw(r.plan())}
}

// privateHome stands in a plan for the directory that exists only during the run.
const privateHome = "<private>"

// plan is the child's whole world as steps 1 to 8 found it. Its hash stands in the intent, so that an audit
// can be held against a plan.
func (r *run) plan() *jsondoc.Node {
	members := []jsondoc.Member{{Key: "argv", Value: stringsNode(r.call.Argv)}}
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

// worldPlan shows what the child may touch. Outside the sandbox (§10.3) that is whatever the user may, and it says so.
func (r *run) worldPlan(spec *sandbox.Spec) []jsondoc.Member {
	everything := stringsNode([]string{"/"})
	reads, writes, executes := everything, everything, everything
	network, isolation := object("mode", jsondoc.Str("full"), "hosts", stringsNode(nil)), "native-local"
	if !spec.Native {
		reads, writes, executes = stringsNode(readable(spec)), stringsNode(spec.Write), stringsNode(executable(spec))
		network, isolation = object("mode", jsondoc.Str(spec.Network.Mode), "hosts", stringsNode(spec.Network.Hosts)), "sandbox"
	}
	l := spec.Limits
	members := []jsondoc.Member{
		{Key: "cwd", Value: jsondoc.Str(spec.Dir)},
		{Key: "env", Value: stringsNode(r.envNames(spec))},
		{Key: "reads", Value: reads},
		{Key: "writes", Value: writes},
		{Key: "executes", Value: executes},
		{Key: "network", Value: network},
		{Key: "limits", Value: object("wall", jsondoc.Str(l.Wall.String()), "cpu", jsondoc.Str(l.CPU.String()),
			"files", number(l.Files), "file_size", number(l.FileSize), "output", number(uint64(max(l.Output, 0))), "note", jsondoc.Str(sandbox.LimitsNote(spec.Native)))},
		{Key: "isolation", Value: jsondoc.Str(isolation)},
	}
	if len(r.world.Withheld) > 0 {
		members = append(members, jsondoc.Member{Key: "withheld", Value: stringsNode(r.world.Withheld)})
	}
	return members
}

func readable(spec *sandbox.Spec) []string {
	reads := slices.Clone(spec.Read)
	for _, l := range spec.Links {
		reads = append(reads, l.Target)
	}
	return reads
}

func executable(spec *sandbox.Spec) []string {
	executes := []string{spec.Program.Path}
	for _, u := range spec.Uses {
		executes = append(executes, u.Path)
	}
	for _, d := range append(slices.Clone(spec.UseDirs), spec.Exec...) {
		executes = append(executes, strings.TrimSuffix(d, "/")+"/")
	}
	return executes
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
