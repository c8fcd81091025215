package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/protocol"
)

// Kernel is what was found on this machine; every decision of §10.5 is made from these values alone, so a
// test can hold a kernel that it does not run on. The zero Kernel can confine nothing.
type Kernel struct {
	System     string // linux/amd64
	Supported  bool   // there is a table of system calls for System
	ABI        int    // of Landlock, 0 = none
	Errata     int
	Filter     bool // seccomp filters that refuse and that kill
	Notify     bool // seccomp user notification
	CloseRange bool
	Openat2    bool
	GetFd      bool   // pidfd_getfd of the command's processes
	Namespaces bool   // a run can have namespaces of its own; asked where Landlock is below abiTruncate
	Barrier    string // why it cannot
	Groups     string // below which a run gets a cgroup of its own (§10.4), "" = nowhere; looked for when asked, not by probe
	Seatbelt   bool   // macOS: there is the program that confines
	// accept holds what the operator accepts to be weaker here, as Options.Accept says it.
	accept string
}

// Accepted are the words that Options.Accept may hold, and so the setting sandbox.accept. Each names a rule.
func Accepted() []string { return []string{"devices", "metadata", "proc", "programs", "signals"} }

// accepts says whether the operator accepts that a rule is kept in the weaker way.
func (k Kernel) accepts(rule string) bool {
	return slices.Contains(Accepted(), rule) && slices.Contains(strings.Fields(k.accept), rule)
}

// posture is how a network mode is held on this kernel. A kernel that lacks what the broker needs gets here only
// with the operator's word.
func (k Kernel) posture(network string) posture {
	if k.spaces() {
		return posture{network: network, signals: signalsScoped, metadata: metadataMounts}
	}
	p := posture{network: network, signals: signalsScoped, metadata: metadataBrokered}
	switch {
	case k.ABI < abiScope && k.Notify:
		p.signals = signalsBrokered
	case k.ABI < abiScope:
		p.signals = signalsRefused
	}
	if missMetadata(k) != "" {
		p.metadata = metadataRefused
	}
	return p
}

// The Landlock ABIs at which a promise begins.
const (
	abiTruncate = 3
	abiScope    = 6
)

// need is one row of the rule table: what is promised, by what, and how a kernel misses it.
type need struct {
	name, mechanism string
	miss            func(k Kernel) string // "" = enforced
	weaker          string                // what holds instead where the operator accepts that; "" = nothing may
}

// needs lists the rules of §10.2 that the kernel has to enforce. Every one is needed by every command.
func needs(k Kernel) []need {
	if k.Seatbelt {
		return nil // seatbeltRows
	}
	if k.spaces() {
		return spaceNeeds()
	}
	signals := need{"signals", "Landlock signal scope; the tree is killed from inside it", missSignals, weakerSignals}
	sockets := need{"abstract-sockets", "Landlock scope, and no unix socket but an anonymous pair", missFiles, ""}
	if k.ABI < abiScope {
		signals.mechanism = "hcpx sends each signal, to processes of the run only"
		sockets.mechanism = "seccomp: no unix socket but an anonymous pair"
	}
	return []need{
		{"system-calls", "seccomp filter with an architecture check", missFilter, ""},
		{"files", "Landlock, every file right handled, allow-list only", missFiles, ""},
		{"programs", "Landlock execute right on the listed files; memfd without a no-exec seal refused", missFiles, ""},
		{"descriptors", "close_range before every start", missCloseRange, ""},
		sockets,
		signals,
		{"metadata", "seccomp user notification; a broker acts beneath the writable trees", missMetadata, weakerMetadata},
	}
}

// What holds where the operator accepts it.
const (
	weakerSignals  = "Accepted: no signal can be sent at all, not even to a process of the run itself, and no group or session of processes begins."
	weakerMetadata = "Accepted: mode, owner, times and attributes cannot be changed at all, not even in the jail."
)

func missFilter(k Kernel) string {
	switch {
	case !k.Supported:
		return fmt.Sprintf("There is no sandbox for %s yet; Linux on amd64 and arm64 has one.", k.System)
	case !k.Filter:
		return "This kernel has no seccomp filters, so system calls cannot be refused."
	}
	return ""
}

func missFiles(k Kernel) string {
	switch {
	case k.ABI == 0:
		return "This kernel has no Landlock (or it is not in its lsm= list), so files cannot be confined." + k.instead()
	case k.ABI < abiTruncate:
		return fmt.Sprintf("Landlock ABI %d cannot refuse truncating files outside the jail; ABI %d (Linux 6.2) is the floor.", k.ABI, abiTruncate) + k.instead()
	}
	return ""
}

func missSignals(k Kernel) string {
	switch {
	case k.ABI < abiTruncate:
		return missFiles(k)
	case k.ABI < abiScope && !k.Notify:
		return fmt.Sprintf("Landlock ABI %d cannot keep signals inside the jail, and without seccomp user notification hcpx cannot send them instead; Linux 6.12 (ABI %d) needs neither.", k.ABI, abiScope)
	}
	return ""
}

func missMetadata(k Kernel) string {
	switch {
	case !k.Notify:
		return "This kernel or container has no seccomp user notification, so mode, owner and times of files outside the jail cannot be protected."
	case !k.Openat2:
		return "This kernel or container has no openat2, so the broker for modes, owners and times cannot hold a path inside the jail."
	}
	return ""
}

func missCloseRange(k Kernel) string {
	if !k.CloseRange {
		return "This kernel or container has no close_range, so inherited descriptors cannot be closed."
	}
	return ""
}

// refusal is the first rule that the kernel cannot enforce, as §10.5 wants it told; nil when there is none. What
// nobody can accept comes before what the operator can.
func (k Kernel) refusal() *protocol.Error {
	var first need
	var words []string
	for _, n := range needs(k) {
		switch why := n.miss(k); {
		case why == "" || n.weaker != "" && k.accepts(n.name):
		case n.weaker == "":
			return unavailable(n.name, why)
		default:
			if first.name == "" {
				first = n
			}
			words = append(words, n.name)
		}
	}
	if first.name == "" {
		return nil
	}
	words = slices.Compact(slices.Sorted(slices.Values(append(words, strings.Fields(k.accept)...))))
	return unavailable(first.name, first.miss(k)).With("setting", "sandbox.accept").
		WithHint(`hcpx doctor; to accept less, sandbox.accept = ["` + strings.Join(words, `", "`) + `"] in config.toml`)
}

// unavailable makes the one answer to a rule that cannot be enforced (§10.5). It names a setting only where the
// operator may accept less: nothing else lets a command that its manifest puts into the sandbox run weaker.
func unavailable(rule, why string) *protocol.Error {
	return protocol.Fail(protocol.SandboxUnavailable, why).WithHint("hcpx doctor").With("rule", rule)
}

// weakened are the rules that are kept in a weaker way because the operator accepts that; every report names them.
func (k Kernel) weakened() []string {
	var names []string
	for _, n := range needs(k) {
		if n.weaker != "" && n.miss(k) != "" && k.accepts(n.name) {
			names = append(names, n.name)
		}
	}
	return names
}

// degraded is what the report of a confined run names, and plan before it: what is kept in a weaker way here.
func (k Kernel) degraded() []string {
	if k.Seatbelt {
		return seatbeltDegraded()
	}
	return append(k.weakened(), watched()...)
}

// facts is doctor's table for the kernel (§10.5).
func (k Kernel) facts() Facts {
	if k.Seatbelt {
		return Facts{Backend: k.backend(), Rules: seatbeltRows()}
	}
	f := Facts{ABI: k.ABI, Errata: k.Errata}
	why := ""
	if refusal := k.refusal(); refusal != nil {
		why = refusal.Message
	} else {
		f.Backend = k.backend()
	}
	for _, n := range needs(k) {
		row := Rule{Name: n.name, Mechanism: n.mechanism, State: "enforced"}
		switch miss := n.miss(k); {
		case miss == "":
		case n.weaker != "" && k.accepts(n.name):
			row.State, row.Detail = "degraded", n.weaker
		default:
			row.State, row.Detail = "missing", miss
		}
		f.Rules = append(f.Rules, row)
	}
	f.Rules = slices.Concat(f.Rules, []Rule{hostsRow(k)}, k.alongRows(), limitRows(k.Groups))
	return f.Unless(why)
}

// Unless says why nothing is run in a sandbox here, "" = something is: then no row is kept, whatever the kernel has for
// it. A row that is missing for a reason of its own keeps that.
func (f Facts) Unless(why string) Facts {
	for i, row := range f.Rules {
		if why != "" && row.State != "missing" {
			f.Rules[i].State, f.Rules[i].Detail = "missing", why
		}
	}
	return f
}

// alongRows are the rules that need nothing of their own from the kernel: where the ones above are kept,
// these are.
func (k Kernel) alongRows() []Rule {
	rows := []Rule{
		{Name: "privileges", Mechanism: "no_new_privs, no capabilities"},
		{Name: "runtime", Mechanism: "not dumpable: its memory, environment and descriptors are closed to the command"},
		{Name: "launcher", Mechanism: "seccomp: no signal to the thread that started the command, no handle of it"},
		{Name: "setid-files", Mechanism: "seccomp and the metadata broker: no setuid or setgid bit is set"},
		{Name: "environment", Mechanism: "built from nothing"},
		{Name: "network-none", Mechanism: "seccomp: no socket of any family"},
		{Name: "network-full", Mechanism: "seccomp: internet streams and datagrams, no unix socket"},
		{Name: "survivors", Mechanism: "SIGKILL from inside the Landlock domain"},
		{Name: "wall-time", Mechanism: "timer, SIGTERM, grace, SIGKILL"},
		{Name: "output", Mechanism: "capped while it is read"},
	}
	for i := range rows {
		rows[i].State = "enforced"
		if k.spaces() {
			rows[i].Mechanism = spaceMechanism(rows[i])
			continue
		}
		if rows[i].Name == "survivors" && k.ABI < abiScope {
			rows[i].Mechanism = "hcpx is the subreaper and knows each group that the command makes; SIGKILL to all of them, while none begins"
			if !k.Notify {
				rows[i].Mechanism = "hcpx is the subreaper; SIGKILL to the command's group, which nothing can leave"
			}
		}
	}
	return rows
}
