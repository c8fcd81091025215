package lint

import (
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/pack"
	"hcpx/internal/policy"
)

// Against says what a newer version of a pack changes, over manifest and policy (§13.3): what it breaks,
// what it brings, and what of it lets the pack do more than before. Changed files of its own programs are
// the digest's matter; nothing here can tell what they do.
func Against(old, next *pack.Pack) []policy.Change {
	c := comparison{was: old.Manifest, is: next.Manifest}
	if c.was == nil || c.is == nil || old.Policy == nil || next.Policy == nil {
		return []policy.Change{{What: "one of the two versions cannot be read, so nothing says how far they differ", Widens: true}}
	}
	c.identity()
	c.wrap()
	c.openapi()
	c.binding()
	c.commands(next.Policy)
	c.triggers()
	c.out = append(c.out, policy.Compare(old.Policy, next.Policy)...)
	c.demands("its policy", musts(old.Policy.Root), musts(next.Policy.Root))
	for _, was := range old.Policy.Verbs {
		if is := next.Policy.Verb(was.Key); is != nil {
			c.demands(was.Key, musts(was.Node), musts(is.Node))
		}
	}
	return c.out
}

// comparison gathers what differs between two manifests.
type comparison struct {
	was, is *manifest.Manifest
	out     []policy.Change
}

func (c *comparison) widens(format string, args ...any) {
	c.out = append(c.out, policy.Change{What: fmt.Sprintf(format, args...), Widens: true})
}

func (c *comparison) differs(format string, args ...any) {
	c.out = append(c.out, policy.Change{What: fmt.Sprintf(format, args...)})
}

// identity is what grants and credentials go by: plane (§9.6), family (§8.2), adapter, must_understand.
func (c *comparison) identity() {
	if c.was.Plane != c.is.Plane {
		c.widens("its plane changes from %s to %s", c.was.Plane, c.is.Plane)
	}
	switch {
	case c.was.Family == c.is.Family:
	case c.is.Family == "":
		c.differs("it leaves the family %q", c.was.Family)
	default:
		c.widens("it now shares its consent with the family %q", c.is.Family)
	}
	if c.was.Adapter != c.is.Adapter {
		c.widens("its adapter changes from %s to %s", c.was.Adapter, c.is.Adapter)
	}
	c.demands("its manifest", musts(c.was.Root), musts(c.is.Root))
}

// demands: who no longer insists on being understood runs where he was refused (§2.6).
func (c *comparison) demands(who string, was, is []string) {
	for _, name := range without(was, is) {
		c.widens("%s no longer demands that the runtime understands %q", who, name)
	}
}

func musts(n *jsondoc.Node) []string {
	list := n.Get("must_understand")
	if list == nil {
		return nil
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Text)
	}
	return names
}

// wrap compares the world that §10.2 builds from the block.
func (c *comparison) wrap() {
	was, is := c.was.Wrap, c.is.Wrap
	if is == nil {
		return
	}
	if was == nil {
		was = &manifest.WrapBlock{Bin: is.Bin, Isolation: is.Isolation, Network: manifest.Network{Mode: "none"}}
	}
	if was.Bin != is.Bin {
		c.widens("its program changes from %s to %s", was.Bin, is.Bin)
	}
	for _, name := range without(is.Uses, was.Uses) {
		c.widens("it now starts %s", name)
	}
	for _, path := range without(is.Reads, was.Reads) {
		c.widens("it now reads %s", path)
	}
	if is.Isolation == "native-local" && was.Isolation != is.Isolation {
		c.widens("it now asks to run outside the sandbox")
	}
	if was.Workspace == "read" && is.Workspace != "read" {
		c.widens("its writes may now change the workspace")
	}
	if is.PassThrough && (!was.PassThrough || is.MaxArgv > was.MaxArgv || len(without(is.AllowedSubcommands, was.AllowedSubcommands)) > 0) {
		c.widens("it passes more arguments through to its program")
	}
	if !slices.Equal(was.Env, is.Env) {
		c.differs("its environment changes")
	}
	c.network(was.Network, is.Network)
}

func (c *comparison) network(was, is manifest.Network) {
	if was.Mode != "full" && is.Mode == "full" {
		c.widens("its network is now full")
	}
	if was.Mode != "full" {
		for _, host := range without(is.Hosts, was.Hosts) {
			c.widens("it may now reach %s", host)
		}
		if is.OperatorHosts && !was.OperatorHosts {
			c.widens("it may now reach hosts that the operator names")
		}
	}
	if was.Mode != is.Mode && (is.Mode == "none" || was.Mode == "full") {
		c.differs("its network is now %s", is.Mode)
	}
}

func (c *comparison) openapi() {
	was, is := c.was.OpenAPI, c.is.OpenAPI
	if was != nil && is != nil && was.Server != is.Server {
		c.widens("its server changes from %s to %s", was.Server, is.Server)
	}
	if was != nil && is != nil && was.Document != is.Document {
		c.differs("its document changes from %s to %s", was.Document, is.Document)
	}
}

// binding: any other way to a credential must be looked at; to need none any more is no danger (§8).
func (c *comparison) binding() {
	was, is := &c.was.Binding, &c.is.Binding
	switch {
	case is.Mode == manifest.ModePublic && was.Mode != is.Mode:
		c.differs("it no longer needs a credential")
	case was.Mode != is.Mode:
		c.widens("its binding changes from %s to %s", was.Mode, is.Mode)
	case is.Mode != manifest.ModePublic && !was.Node.Equal(is.Node):
		c.widens("its %s binding changes its hub, its source or where the credential goes", is.Mode)
	}
}

// commands tells which came and went, and which run otherwise than before.
func (c *comparison) commands(p *policy.Policy) {
	for _, was := range c.was.Commands {
		if is := c.is.Command(was.Key); is != nil {
			c.command(was, is)
			continue
		}
		c.differs("the command %s is gone", was.Key)
	}
	for _, is := range c.is.Commands {
		if e := p.Verb(is.Key); e != nil && c.was.Command(is.Key) == nil {
			c.differs("the command %s is new: %s, land %s", is.Key, e.Operation, e.Land)
		}
	}
}

func (c *comparison) command(was, is *manifest.Command) {
	c.demands(was.Key, musts(was.Node), musts(is.Node))
	for _, call := range without(calls(is), calls(was)) {
		c.widens("%s: it now calls %s", was.Key, call)
	}
	if !was.ArgsNode.Equal(is.ArgsNode) {
		c.differs("%s: its arguments change", was.Key)
		c.arguments(was, is)
	}
	c.operation(was, is)
	if !was.ResultNode.Equal(is.ResultNode) {
		c.differs("%s: its result changes", was.Key)
	}
	for _, member := range []string{"argv", "stdin", "output", "ok_exit", "steps", "operation_id"} {
		if !was.Node.Get(member).Equal(is.Node.Get(member)) {
			c.differs("%s: what it runs changes (%s)", was.Key, member)
		}
	}
}

// operation: what the documents say of a command, whose operation_id may well be the same (§3.6).
func (c *comparison) operation(was, is *manifest.Command) {
	if was.Operation == nil || is.Operation == nil {
		return
	}
	before, after := was.Operation(), is.Operation()
	for _, member := range []string{"method", "path", "base", "params", "body", "security"} {
		if !before.Get(member).Equal(after.Get(member)) {
			c.differs("%s: the request that it sends changes (%s)", was.Key, member)
		}
	}
	if was.ArgsNode == nil && is.ArgsNode == nil && !before.Get("args").Equal(after.Get("args")) {
		c.differs("%s: its arguments change", was.Key)
		c.arguments(was, is)
	}
}

// triggers tells which came and went, and which are fed otherwise (§7.1).
func (c *comparison) triggers() {
	before := map[string]*manifest.Trigger{}
	for _, t := range c.was.Triggers {
		before[t.Key] = t
	}
	for _, is := range c.is.Triggers {
		was := before[is.Key]
		delete(before, is.Key)
		switch {
		case was == nil:
			c.differs("the trigger %s is new", is.Key)
		case !was.Node.Get("source").Equal(is.Node.Get("source")):
			c.differs("%s: its source changes", is.Key)
		}
	}
	for _, was := range c.was.Triggers {
		if before[was.Key] != nil {
			c.differs("the trigger %s is gone", was.Key)
		}
	}
}

// arguments: a guard that an argument loses (§3.3, §15.4).
func (c *comparison) arguments(was, is *manifest.Command) {
	before, err := was.Args()
	after, fault := is.Args()
	if err != nil || fault != nil {
		return // manifest.args-schema
	}
	for _, now := range after.Properties() {
		then := before.Property(now.Name)
		if now.AllowDash && (then == nil || !then.AllowDash) {
			c.widens("%s: %s may now begin with a dash", was.Key, now.Name)
		}
		if then != nil && then.Secret && !now.Secret {
			c.widens("%s: %s is no longer kept out of the audit", was.Key, now.Name)
		}
	}
}

// calls are the commands that a composite's steps name, as pack/verb.
func calls(c *manifest.Command) []string {
	steps := c.Node.Get("steps")
	if steps == nil {
		return nil
	}
	var out []string
	for _, step := range steps.Items {
		if verb := step.Get("verb"); verb != nil {
			name := verb.Text
			if other := step.Get("pack"); other != nil {
				name = other.Text + "/" + name
			}
			out = append(out, strings.TrimPrefix(name, "/"))
		}
	}
	return out
}

// without are the items of list that are not among others.
func without(list, others []string) []string {
	var out []string
	for _, item := range list {
		if !slices.Contains(others, item) {
			out = append(out, item)
		}
	}
	return out
}
