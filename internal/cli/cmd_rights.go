package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"hcpx/internal/grant"
)

// The operator's commands (§9.6, §10.2): allow, grant, revoke, grants. Each is a person's act.

// allowOptions is one of five forms: programs, native-local for a pack, hosts for a pack, paths for a pack, and a run
// that is watched to learn what to allow.
type allowOptions struct {
	Bins      []string
	Dangerous bool
	Native    string
	HostPack  string
	Hosts     []string
	ReadPack  string
	Reads     []string
	Remove    bool
	Learn     bool
	Yes       bool
	Argv      []string
}

func newAllowCmd(d *deps, run runner[allowOptions]) *cobra.Command {
	var o allowOptions
	c := command(text{
		use:   "allow BIN… | --native PACK | --host PACK HOST:PORT… | --read PACK PATH… | --learn -- PROGRAM ARG…",
		short: "Allow programs, native-local, hosts or paths to packs",
		long: "BIN is a name, recorded with the absolute path that PATH gives now, or a path. An interpreter or shell needs\n" +
			"--dangerous. --native lets a pack that asks for it run outside the sandbox. --host adds hosts to a pack that takes\n" +
			"them. --read opens paths that a pack declares to read. --remove takes back what the same words without it allowed.\n" +
			"--learn allows nothing: it runs a program that you trust OUTSIDE the sandbox, with all your rights, and proposes\n" +
			"what a pack for it would declare. What the program prints goes to stderr.",
		example: "hcpx allow git\nhcpx allow python3 --dangerous\nhcpx allow --host mirror files.example.org:443\nhcpx allow --read git '~/.gitconfig'\nhcpx allow --remove --host mirror files.example.org:443\n" +
			"hcpx allow --learn -- git fetch",
	}, cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		if err := o.operands(args, c.ArgsLenAtDash()); err != nil {
			return err
		}
		return run(c.Context(), d, o)
	})
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&o.Dangerous, "dangerous", false, "allow an interpreter or shell as the program of a command")
	f.StringVar(&o.Native, "native", "", "let `PACK` run outside the sandbox")
	f.StringVar(&o.HostPack, "host", "", "add the hosts that follow to `PACK`")
	f.StringVar(&o.ReadPack, "read", "", "open the paths that follow to `PACK`")
	f.BoolVar(&o.Remove, "remove", false, "take back what was allowed")
	f.BoolVar(&o.Learn, "learn", false, "run the program behind -- unsandboxed, and propose what it needs")
	f.BoolVar(&o.Yes, "yes", false, "learn without being asked")
	c.ValidArgsFunction = nil // names of programs: the shell knows them
	return c
}

// operands tells the forms apart; dash is how many words stand before "--", -1 without one.
func (o *allowOptions) operands(args []string, dash int) error {
	if o.Learn || o.Yes {
		return o.learning(args, dash)
	}
	forms := 0
	for _, pack := range []string{o.Native, o.HostPack, o.ReadPack} {
		if pack != "" {
			forms++
		}
	}
	switch {
	case forms > 1:
		return usage("allow", "--native, --host and --read are acts of their own; give one")
	case o.Remove && o.Dangerous:
		return usage("allow", "--remove takes a program back, however it was allowed; --dangerous does not belong to it")
	case forms == 1 && o.Dangerous:
		return usage("allow", "--dangerous belongs to programs")
	case o.Native != "" && len(args) > 0:
		return usage("allow", "--native takes the id of one pack and nothing else")
	case o.HostPack != "" && len(args) == 0:
		return usage("allow", "--host takes a pack and at least one host:port")
	case o.ReadPack != "" && len(args) == 0:
		return usage("allow", "--read takes a pack and at least one path")
	case forms == 0 && len(args) == 0:
		return usage("allow", "hcpx allow needs a program, --native PACK, --host PACK HOST:PORT, or --read PACK PATH")
	case o.HostPack != "":
		o.Hosts = args
	case o.ReadPack != "":
		o.Reads = args
	default:
		o.Bins = args
	}
	return nil
}

// learning is the form whose words are a command line.
func (o *allowOptions) learning(args []string, dash int) error {
	switch {
	case !o.Learn:
		return usage("allow", "--yes belongs to --learn")
	case o.Native+o.HostPack+o.ReadPack != "" || o.Dangerous || o.Remove:
		return usage("allow", "--learn allows nothing and is an act of its own")
	case dash != 0 || len(args) == 0:
		return usage("allow", "--learn takes the program and its arguments behind --, as in hcpx allow --learn -- git fetch")
	}
	o.Argv = args
	return nil
}

// grantOptions is one grant, or the selectors of revoke.
type grantOptions struct {
	Principal                      string
	Capabilities                   []string
	Packs, Verbs, Projects, Planes []string
	Args                           []argRule
	SelfConfirm, Deny              bool
	Expires                        string
}

// argRule is one --arg K=V with V as JSON.
type argRule struct {
	Name  string
	Value string
}

func newGrantCmd(d *deps, run runner[grantOptions]) *cobra.Command {
	return newRuleCmd(d, text{
		use: "grant PRINCIPAL CAPABILITY…", short: "Give, or with --deny refuse, capabilities to a principal",
		long: "Capabilities: pack.install, pack.connect, verb.exec.read, verb.exec.write, sense.enable. PRINCIPAL, packs, verbs and\n" +
			"projects may hold *. A deny beats every allow. --arg limits the grant to arguments that fit: true, false, null and\n" +
			"numbers are themselves, anything else is a text in which * stands for any.",
		example: "hcpx grant agent:claude-code verb.exec.write --pack git --verb add\nhcpx grant 'agent:*' verb.exec.write --pack git --verb 'branch.create' --arg 'name=agent/*'",
	}, run)
}

func newRevokeCmd(d *deps, run runner[grantOptions]) *cobra.Command {
	return newRuleCmd(d, text{
		use: "revoke PRINCIPAL [CAPABILITY…]", short: "Remove every grant that fits what is named",
		long:    "What is not named fits everything.",
		example: "hcpx revoke agent:claude-code\nhcpx revoke agent:claude-code verb.exec.write --pack git",
	}, run)
}

// newRuleCmd makes grant and revoke, which take the same words. grant takes several values of an axis,
// revoke one.
func newRuleCmd(d *deps, t text, run runner[grantOptions]) *cobra.Command {
	var o grantOptions
	var rules []string
	granting := strings.HasPrefix(t.use, "grant ")
	least, what := 1, "a principal"
	if granting {
		least, what = 2, "a principal and at least one capability"
	}
	c := command(t, operands(least, -1, what), func(c *cobra.Command, args []string) error {
		o.Principal, o.Capabilities = args[0], args[1:]
		if !granting && max(len(o.Packs), len(o.Verbs), len(o.Projects), len(o.Planes)) > 1 {
			return usage("revoke", "hcpx revoke takes each of --pack, --verb, --project and --plane once")
		}
		for _, r := range rules {
			rule, err := readRule(c.Name(), r)
			if err != nil {
				return err
			}
			o.Args = append(o.Args, rule)
		}
		return run(c.Context(), d, o)
	})
	f := c.Flags()
	f.SortFlags = false
	f.StringArrayVar(&o.Packs, "pack", nil, "packs that fit `GLOB`")
	f.StringArrayVar(&o.Verbs, "verb", nil, "verbs that fit `GLOB`")
	f.StringArrayVar(&o.Projects, "project", nil, "projects that fit `GLOB`")
	f.StringArrayVar(&o.Planes, "plane", nil, "`PLANE` runtime or control")
	f.StringArrayVar(&rules, "arg", nil, "a rule on an argument: `NAME=VALUE`")
	f.BoolVar(&o.SelfConfirm, "self-confirm", false, "with which an agent's own confirmation counts")
	f.BoolVar(&o.Deny, "deny", false, "a deny instead of an allow")
	f.StringVar(&o.Expires, "expires", "", "that ends at `TIME`, as 2027-01-31T18:00:00Z")
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []string{"human:", "agent:", "service:", "mothership:"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		return capabilities(), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// readRule reads NAME=VALUE (§9.6).
func readRule(command, word string) (argRule, error) {
	name, value, found := strings.Cut(word, "=")
	if !found || name == "" {
		return argRule{}, usage(command, "--arg is NAME=VALUE, and %q is not", clip(clean(word)))
	}
	return argRule{name, string(grant.ArgValue(value))}, nil
}

// grantsOptions lists all grants, or explains one decision.
type grantsOptions struct {
	Explain               bool
	Principal, Pack, Verb string
	Project               string
}

func newGrantsCmd(d *deps, run runner[grantsOptions]) *cobra.Command {
	var o grantsOptions
	c := command(text{
		use: "grants [--explain PRINCIPAL PACK VERB [--project P]]", short: "List the grants, or explain one decision step by step",
		long:    "--explain prints the path of the decision and exits 0 whatever the answer is.",
		example: "hcpx grants\nhcpx grants --explain agent:claude-code git commit",
	}, cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		switch {
		case o.Explain && len(args) != 3:
			return usage("grants", "--explain takes a principal, a pack and a verb")
		case !o.Explain && len(args) > 0:
			return usage("grants", "hcpx grants takes no operand without --explain, and %q is one", clip(clean(args[0])))
		case o.Explain:
			o.Principal, o.Pack, o.Verb, o.Project = args[0], args[1], args[2], d.flags.Project
		}
		return run(c.Context(), d, o)
	})
	c.Flags().BoolVar(&o.Explain, "explain", false, "explain whether PRINCIPAL may run VERB of PACK")
	c.ValidArgsFunction = func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if !o.Explain || len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return d.completeExec(c, args[1:min(len(args), 2)], word)
	}
	return c
}
