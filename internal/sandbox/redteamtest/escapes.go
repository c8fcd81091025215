package redteamtest

// Escape is a way out of a sandbox that somebody found, or that could be found. It is held by rows of the table,
// or, where there is nothing that could work outside, by tests of its own.
type Escape struct {
	ID, Class, Reference string
	// Tests are the ones that hold it beside the rows, as package.Test; none = the rows alone.
	Tests []string
}

// Escapes is the list that the red team works through: RT01 to RT38 with where they were seen, and what was added.
func Escapes() []Escape { return append(known(), more()...) }

func known() []Escape {
	return []Escape{
		{"RT01", "terminal injection", "containers/bubblewrap#142, #555", nil},
		{"RT02", "width of an ioctl in the filter", "containers/bubblewrap#309, flatpak/flatpak#2782", nil},
		{"RT03", "named unix socket", "Zouuup/landrun#43, nolabs-ai/nono#781, GreyhavenHQ/greywall#55", nil},
		{"RT04", "bus of the desktop", "GreyhavenHQ/greywall#32, netblue30/firejail#796", nil},
		{"RT05", "abstract unix socket", "netblue30/firejail#801, debfx/runjail#21, Certora/AutoProver#73", nil},
		{"RT06", "datagram pair that connects again", "nolabs-ai/nono#1089, trpc-group/trpc-agent-go#2426", nil},
		{"RT07", "agents and tokens in the environment", "bytedance/deer-flow#5145, NVIDIA/NemoClaw#1893", []string{"hcpx.Test_10_2_red_team_pack"}},
		{"RT08", "code in the environment", "TNG/oh-my-agentic-coder#102", []string{"gate.FuzzManifestToSandbox"}},
		{"RT09", "memory and environment of the runtime", "inflexa-ai/inflexa#88, multikernel/sandlock#11, CopilotKit/OpenBot#552", nil},
		{"RT10", "secret in an argument", "QwenLM/qwen-code#12269, containers/bubblewrap#503", []string{"hcpx.Test_10_2_red_team_of_exec"}},
		{"RT11", "inherited descriptors", "CVE-2024-21626, containers/crun#110, google/nsjail#328", nil},
		{"RT12", "link out of the jail", "wonderwhy-er/DesktopCommanderMCP#420, librefang/librefang#6299, multikernel/sandlock#112", nil},
		{"RT13", "hard link", "Hmbown/Codewhale#5569, openai/codex#21819, multikernel/sandlock#179", nil},
		{"RT14", "rename over a name", "safedep/pmg#446, navikt/cplt#455, PostHog/posthog#87021", []string{"protect.Test_10_2_ProtectedNames"}},
		{"RT15", "hooks and configuration that the host runs later", "trailofbits/claude-code-config#48, Gitlawb/zero#654, ocaml/dune#4997", []string{"protect.Test_10_2_ProtectedNames", "protect.Test_10_2_EveryGitDirectory"}},
		{"RT16", "metadata outside", "Zouuup/landrun#58, landlock-lsm/linux#11, nolabs-ai/nono#914", nil},
		{"RT17", "io_uring", "openai/codex#10814, LeGambiArt/arapuca#33, BaseIntelligence/bounty-challenge#19309", nil},
		{"RT18", "another way into the kernel", "sympozium-ai/celln#30, anthropic-experimental/sandbox-runtime", nil},
		{"RT19", "namespaces", "openai/codex#15057", nil},
		{"RT20", "programs by the loader", "jdx/mise#12774, navikt/cplt#331", nil},
		{"RT21", "programs from memory", "landlock-lsm/linux#37", nil},
		{"RT22", "signals", "nolabs-ai/nono#207, Certora/AutoProver#73, landlock-lsm/linux#58", nil},
		{"RT23", "memory and descriptors of processes", "openai/codex#4220", nil},
		{"RT24", "privileges by a program", "google/nsjail#286, agentic-dev3o/sandbox-shell#22", nil},
		{"RT25", "survivors", "multikernel/sandlock#252, langfuse/langfuse#15955, marcusquinn/aidevops#26951", []string{"sandbox.Test_6_9_fork_bomb_leaves_no_survivor"}},
		{"RT26", "a pipe that is held open", "constellation-works/orbit#182", nil},
		{"RT27", "flood of output", "Gitlawb/zero#469, MoonshotAI/kimi-code#1285, openclaw/openclaw#95195", []string{"hcpx.Test_10_2_red_team_of_exec"}},
		{"RT28", "argument that is an option", "ruby-git/ruby-git#568, FredrikNoren/ungit#1510, HackTricks-wiki/hacktricks#1514", []string{"hcpx.Test_10_2_red_team_of_exec"}},
		{"RT29", "another program of the name", "mweinbach/agent-coworker#153, echoVic/orca-agent#71", []string{"hcpx.Test_10_2_red_team_of_exec"}},
		{"RT30", "data in names that are looked up", "anthropic-experimental/sandbox-runtime#88, NVIDIA/OpenShell#1169, CVE-2025-55284", []string{"sandbox.Test_10_2_hosts_names_are_no_way_out"}},
		{"RT31", "any host of a port", "nolabs-ai/nono#1631, navikt/cplt#114", []string{"sandbox.Test_10_2_hosts_attacks"}},
		{"RT32", "datagrams", "navikt/cplt#241, landlock-lsm/linux#10", []string{"sandbox.Test_10_2_hosts_attacks"}},
		{"RT33", "other ways to connect", "landlock-lsm/linux#54, #40, #41", nil},
		{"RT34", "a listed name that leads elsewhere", "superradcompany/microsandbox#709, UKGovernmentBEIS/inspect_k8s_sandbox#208", []string{"sandbox.Test_10_2_hosts_rebinding_and_redirects", "egress.Test_10_2_classes"}},
		{"RT35", "open when it fails", "anthropics/claude-agent-sdk-typescript#239, avala-ai/agent-code#342, NVIDIA/OpenShell#803, boxlite-ai/boxlite#681", []string{"hcpx.Test_10_2_red_team_of_exec"}},
		{"RT36", "a missing path that is passed over", "opensandbox-group/OpenSandbox#1474", []string{"sandbox.Test_10_2_jail_refuses"}},
		{"RT37", "the caller's own opt-out", "anthropic-experimental/sandbox-runtime#13, #97", []string{"hcpx.Test_10_2_red_team_of_exec"}},
		{"RT38", "policy from the workspace", "tbrandenburg/cade#103", []string{"hcpx.Test_10_2_red_team_of_exec"}},
	}
}

func more() []Escape {
	return []Escape{
		{"files", "files and trees", "", nil},
		{"handles", "files by handles", "", nil},
		{"watch", "watches on what may not be read", "", nil},
		{"locks", "locks and leases that make others wait", "", nil},
		{"devices", "devices, fifos, shared memory", "", nil},
		{"kernel files", "files of the kernel", "", nil},
		{"programs", "programs", "", nil},
		{"sockets", "sockets of every family", "", nil},
		{"session", "groups and sessions of processes", "", nil},
		{"scheduling", "limits, priority and place of others", "", nil},
		{"command lines", "command lines of others", "", nil},
		{"own proc", "oom, resource groups and other files of a process", "", nil},
		{"keys", "keyrings", "", nil},
		{"ipc", "System V and POSIX queues and memory", "", nil},
		{"futex", "futexes on shared files", "", nil},
		{"personality", "personality", "", nil},
		{"stacking", "filters and brokers of the attacker's own", "", nil},
		{"core dumps", "core dumps", "", []string{"sandbox.Test_10_2_runtime_leaves_no_core_dump"}},
		{"mounts", "mounts and subvolumes", "", nil},
		{"calls", "system calls that must not be reached", "", []string{"sandbox.Test_10_2_filter_proof"}},
		{"store", "link swapped in the store", "", []string{"hcpx.Test_10_2_red_team_of_exec"}},
	}
}
