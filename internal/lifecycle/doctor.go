package lifecycle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/egress"
	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// Doctor examines everything that status does and more: lint of the installed packs, what they still
// need, their programs and probes, their skill copies, the allow-list, and the sandbox's table of rules
// (§10.5). Each finding that is not well has its fix; repair is a command of its own.
func (l *Lifecycle) Doctor(s protocol.Session) HealthView {
	l = l.reading()
	h := l.health(s)
	h.storeStands()
	h.identityStands()
	h.secretsStand()
	h.rules()
	if h.st != nil {
		h.programs()
		h.packs(h.examine)
		h.skillsLeft()
	}
	return h.done()
}

// rules is the table of §10.5. The canary is run for it, in a directory of its own: a proof may be older than what
// broke the sandbox.
func (h *health) rules() {
	proved, facts := h.proved(), h.Gate.Sandbox.Facts()
	at := slices.IndexFunc(facts.Rules, func(r sandbox.Rule) bool { return r.Name == proved.Name })
	// What it says beyond the table is what it came to; a canary that failed refuses every run, so no row is kept.
	if at >= 0 && proved.State == "missing" && proved.Detail != facts.Rules[at].Detail {
		facts = facts.Unless("The canary failed, so nothing is run in a sandbox.")
	}
	for _, r := range facts.Rules {
		if r.Name == proved.Name {
			r = proved
		}
		h.view.Rules = append(h.view.Rules, SandboxRule{Rule: r.Name, Mechanism: r.Mechanism, State: r.State, Detail: r.Detail})
	}
}

func (h *health) proved() sandbox.Rule {
	dir, err := os.MkdirTemp("", "hcpx-canary-")
	if err != nil {
		h.fail("sandbox", "canary", "The sandbox cannot be tried: "+sentenceEnd(err.Error())+".", "hcpx doctor")
		return sandbox.Rule{}
	}
	row := h.probeBox(dir).Prove(context.Background())
	if err := os.RemoveAll(dir); err != nil {
		h.warn("sandbox", "canary", "What the test of the sandbox made cannot be removed: "+sentenceEnd(err.Error())+".", "rm -rf "+protocol.Word(dir))
	}
	switch {
	case row.State == "enforced":
		h.ok("sandbox", row.Name, "A child that tried to leave could not.")
	case h.Gate.Sandbox.Facts().Backend != "" && row.Name != "":
		h.fail("sandbox", row.Name, row.Detail, "hcpx doctor")
	}
	return row
}

// storeStands asks a store on disk whether its place is safe.
func (h *health) storeStands() {
	disk, ok := h.Store.(interface{ Safe() error })
	if !ok {
		return
	}
	if err := disk.Safe(); err != nil {
		h.fail("store", h.Store.Home(), "The store is not safe: "+sentenceEnd(err.Error())+".", "chmod 700 "+protocol.Word(h.Store.Home()))
		return
	}
	h.ok("store", h.Store.Home(), "It belongs to you, and nobody else can write it.")
}

func (h *health) identityStands() {
	if !h.s.Principal.Valid() {
		h.fail("identity", "principal", "The caller has no valid principal.", "hcpx whoami")
		return
	}
	h.ok("identity", string(h.s.Principal), "Found by "+orWord(h.s.How, "the caller's word")+".")
}

// programs: each entry of the allow-list is still the file that was allowed.
func (h *health) programs() {
	for _, b := range h.st.Bins {
		if gate.Stands(&b) != nil {
			h.warn("program", b.Name, b.Path+" is gone, was replaced, or lies where others can write; commands that need it are refused.", "hcpx allow "+dangerousFlag(b)+protocol.Words(h.spelled(b)))
			continue
		}
		if why, fix := h.scripted(h.st, b); why != "" {
			h.warn("program", b.Name, why+".", fix)
		}
	}
}

// spelled is what allows an entry again: the path, where the operator gave one, for PATH may find another file.
func (h *health) spelled(b protocol.AllowedBin) string {
	for _, other := range h.st.Bins {
		if other.Path == b.Path && filepath.IsAbs(other.Name) && filepath.Base(other.Name) == b.Name {
			return other.Name
		}
	}
	return b.Name
}

func dangerousFlag(b protocol.AllowedBin) string {
	if b.Dangerous {
		return "--dangerous "
	}
	return ""
}

// examine looks at one pack from all sides, and says one thing when all is well.
func (h *health) examine(id string) {
	before := len(h.view.Findings)
	loaded, err := h.Gate.Installed(id)
	if err != nil {
		h.fail("pack", id, err.Message, err.Hint)
		return
	}
	issues, err := h.lintInstalled(id)
	if err != nil {
		h.fail("pack", id, "It cannot be linted: "+err.Message, err.Hint)
	}
	for _, i := range issues {
		if i.Severity == protocol.SeverityError {
			h.fail("pack", id, fmt.Sprintf("It no longer passes lint: %s:%d:%d %s: %s", i.File, i.Line, i.Column, i.Code, i.Message), "hcpx lint "+protocol.Word(loaded.Dir))
		}
	}
	for _, s := range h.Gate.Scripts(h.st, loaded) {
		if places.Within(s.Program.Path, places.Resolve(loaded.Dir)) { // of others the allow-list's findings tell
			h.warn("program", id, fmt.Sprintf("Of its own %s: %s.", s.Program.Name, s.Why()), s.Fix(h.Gate.Again(id)))
		}
	}
	if active(h.st, id) {
		h.needs(id)
		if h.reachable(id) {
			h.enforced(id)
		}
		h.skillStands(id)
	}
	if err := h.probed(id); err != nil {
		h.warn("program", id, err.Message, "hcpx availability "+id)
	}
	if len(h.view.Findings) == before {
		h.ok("pack", id, "Its files are those that were installed, and it passes lint.")
	}
}

func (h *health) needs(id string) {
	loaded, err := h.Gate.Installed(id)
	if err != nil {
		return // said already
	}
	needs := needsOf(h.st, loaded.Manifest)
	if len(needs) == 0 {
		return
	}
	names := make([]string, len(needs))
	for i, n := range needs {
		names[i] = n.Name
	}
	slices.Sort(names)
	h.warn("pack", id, "It is activated and still needs "+strings.Join(names, ", ")+".", needs[0].Hint)
}

// reachable: no host that the operator named keeps every command of the pack from running (§10.2).
func (h *health) reachable(id string) bool {
	sound := true
	for _, entry := range h.st.Hosts {
		if entry.Pack != id {
			continue
		}
		if _, err := egress.ParseHost(entry.Host); err != nil {
			sound = false
			h.warn("pack", id, entry.Host+", which was allowed, is no host that a command could reach: "+err.Error()+". No command of the pack that uses the network runs.",
				"hcpx allow --remove --host "+id+" "+protocol.Words(entry.Host))
		}
	}
	return sound
}

// enforced: every command of an activated pack can be confined here (§10.5).
func (h *health) enforced(id string) {
	a := available{h.Lifecycle, h.s, h.st, grant.NewSet(h.st.Grants)}
	var refused []string
	for verb, c := range a.pack(id).Commands {
		if c.Reason == protocol.SandboxUnavailable && !c.Native {
			refused = append(refused, verb)
		}
	}
	if len(refused) > 0 {
		slices.Sort(refused)
		need := "the command " + refused[0] + " needs"
		if len(refused) > 1 {
			need = "the commands " + strings.Join(refused, ", ") + " need"
		}
		h.warn("sandbox", id, "This machine cannot enforce a rule that "+need+"; see the table.", "hcpx exec "+id+" "+refused[0]+" --plan")
	}
}

func (h *health) skillStands(id string) {
	if state := h.skillState(id); state != skillCurrent {
		h.warn("pack", id, "Its skill copy is "+state+".", "hcpx setup update")
	}
}

// skillsLeft: no copy of a pack that is not installed.
func (h *health) skillsLeft() {
	left, err := h.leftSkills()
	if err != nil {
		h.fail("store", "skills", "The skill copies cannot be listed: "+sentenceEnd(err.Error())+".", "hcpx repair")
	}
	for _, id := range left {
		h.warn("pack", id, "A skill copy is left of it, but it is not installed.", "hcpx repair")
	}
}

func orWord(s, or string) string {
	if s == "" {
		return or
	}
	return s
}
