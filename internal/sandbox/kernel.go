package sandbox

import (
	"fmt"

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
	Groups     string // below which a run gets a cgroup of its own (§10.4), "" = nowhere; looked for when asked, not by probe
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
}

// needs lists the rules of §10.2 that the kernel has to enforce. Every one is needed by every command.
func needs() []need {
	return []need{
		{"system-calls", "seccomp filter with an architecture check", missFilter},
		{"files", "Landlock, every file right handled, allow-list only", missFiles},
		{"programs", "Landlock execute right on the listed files; memfd without a no-exec seal refused", missFiles},
		{"signals", "Landlock signal scope; the tree is killed from inside it", missSignals},
		{"abstract-sockets", "Landlock scope, and no unix socket but an anonymous pair", missSignals},
		{"metadata", "seccomp user notification; a broker acts beneath the writable trees", missMetadata},
		{"descriptors", "close_range before every start", missCloseRange},
	}
}

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
		return "This kernel has no Landlock (or it is not in its lsm= list), so files cannot be confined."
	case k.ABI < abiTruncate:
		return fmt.Sprintf("Landlock ABI %d cannot refuse truncating files outside the jail; ABI %d (Linux 6.2) is the floor.", k.ABI, abiTruncate)
	}
	return ""
}

func missSignals(k Kernel) string {
	if k.ABI < abiScope {
		return fmt.Sprintf("Landlock ABI %d cannot keep signals inside the jail; Linux 6.12 (ABI %d) or later is needed. A later version will keep them with ABI 3 to 5 too, by a signal broker.", k.ABI, abiScope)
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

// refusal is the first rule that the kernel cannot enforce, as §10.5 wants it told; nil when there is none.
func (k Kernel) refusal() *protocol.Error {
	for _, n := range needs() {
		if why := n.miss(k); why != "" {
			return unavailable(n.name, why)
		}
	}
	return nil
}

// unavailable makes the one answer to a rule that cannot be enforced (§10.5). It names no setting: a command
// that its manifest puts into the sandbox runs in no weaker way, whatever anybody sets.
func unavailable(rule, why string) *protocol.Error {
	return protocol.Fail(protocol.SandboxUnavailable, why).WithHint("hcpx doctor").With("rule", rule)
}

// facts is doctor's table for the kernel (§10.5).
func (k Kernel) facts() Facts {
	f := Facts{ABI: k.ABI, Errata: k.Errata}
	why := ""
	for _, n := range needs() {
		row := Rule{Name: n.name, Mechanism: n.mechanism, State: "enforced"}
		if miss := n.miss(k); miss != "" {
			row.State, row.Detail = "missing", miss
			if why == "" {
				why = miss
			}
		}
		f.Rules = append(f.Rules, row)
	}
	if why == "" {
		f.Backend = "landlock"
	}
	f.Rules = append(f.Rules, Rule{Name: "network-hosts", Mechanism: "a connect broker", State: "missing", Detail: hostsMissing})
	for _, row := range append(alongRows(), limitRows(k.Groups)...) {
		if why != "" {
			row.State, row.Detail = "missing", why // nothing is run, so nothing is kept
		}
		f.Rules = append(f.Rules, row)
	}
	return f
}

// alongRows are the rules that need nothing of their own from the kernel: where the ones above are kept,
// these are.
func alongRows() []Rule {
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
	}
	return rows
}

// hostsMissing is why network hosts is refused as long as no broker connects for the child.
const hostsMissing = "Network limited to listed hosts cannot be enforced by this version; only none and full can."
