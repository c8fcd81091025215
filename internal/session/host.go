package session

import (
	"bytes"
	"strconv"
	"strings"

	"hcpx/internal/protocol"
)

// mark is a variable that an agent host sets for the processes it starts. Without a host its value names one.
type mark struct{ name, host string }

// hostMarks are the marks, the most telling first: nested agents inherit those of the outer one, and the general
// names are set beside a host's own. No host has a dot, which begins a label.
var hostMarks = [...]mark{
	{"CLAUDECODE", "claude-code"}, {"CODEX_THREAD_ID", "codex"}, {"GEMINI_CLI", "gemini-cli"}, {"QWEN_CODE", "qwen-code"},
	{"CURSOR_AGENT", "cursor"}, {"CRUSH", "crush"}, {"GOOSE_TERMINAL", "goose"}, {"OPENCODE", "opencode"},
	{"AMP_CURRENT_THREAD_ID", "amp"}, {"COPILOT_AGENT_SESSION_ID", "copilot-cli"}, {"CLINE_ACTIVE", "cline"}, {"ROO_ACTIVE", "roo"},
	{"ANTIGRAVITY_AGENT", "antigravity"}, {"JUNIE_DATA", "junie"}, {"OZ_RUN_ID", "warp"}, {"AUGMENT_AGENT", "augment"},
	{"AI_AGENT", ""}, {"AGENT", ""},
}

// unnamed is the host of a mark whose value names none.
const unnamed = "unnamed"

// hostOf is the host that a mark with this value stands for, "" when it is none. AGENT is an ordinary word, so that
// only values which hosts are known to give it count.
func (m mark) hostOf(value string) string {
	switch {
	case value == "":
		return ""
	case m.host != "":
		return m.host
	case m.name == "AGENT":
		switch value {
		case "amp", "goose", "crush":
			return value
		case "1":
			return unnamed
		}
		return ""
	}
	if at := strings.IndexAny(value, "/@ "); at >= 0 { // a version follows
		value = value[:at]
	}
	if name := agentName(value); name != "" {
		return name
	}
	return unnamed
}

// Bounds of the look at ancestors: how many, and how much of an environment.
const (
	maxAncestors = 32
	maxEnviron   = 1 << 20
)

// agentHost finds the host of the agent that this process belongs to, and where its mark stands; "" when there is
// none (§9.3). Its own environment is looked at first, then those of its ancestors as far as they can be read. It
// is advice: whoever may start processes may start one without marks and without these ancestors.
func (in Inputs) agentHost() (host, where string) {
	if !in.Detect {
		return "", ""
	}
	for _, m := range hostMarks {
		if host := m.hostOf(in.Getenv(m.name)); host != "" {
			return host, m.name + " in its environment"
		}
	}
	buf := make([]byte, 0, 16<<10)
	for pid, n := in.Parent, 0; pid > 0 && n < maxAncestors; n++ {
		process := in.Proc + "/" + strconv.Itoa(pid)
		buf = readProcess(process+"/environ", buf[:0])
		if m, host := firstMark(buf); host != "" {
			return host, m + " in the environment of process " + strconv.Itoa(pid)
		}
		if pid == 1 {
			break // the first process has no parent
		}
		buf = readProcess(process+"/stat", buf[:0])
		pid = parentOf(buf)
	}
	return "", ""
}

// firstMark is the first mark of an environment as the kernel shows it, and its host.
func firstMark(environ []byte) (name, host string) {
	best := len(hostMarks)
	for len(environ) > 0 {
		var one []byte
		one, environ, _ = bytes.Cut(environ, []byte{0})
		at := bytes.IndexByte(one, '=')
		if at < 0 {
			continue
		}
		for i := range best {
			if string(one[:at]) != hostMarks[i].name {
				continue
			}
			if h := hostMarks[i].hostOf(string(one[at+1:])); h != "" {
				best, name, host = i, hostMarks[i].name, h
			}
			break
		}
	}
	return name, host
}

// parentOf reads stat of proc(5): the program's name, in parentheses, may hold anything; state and parent follow it.
func parentOf(stat []byte) int {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return pid
}

// asAgent holds a process of an agent to its host: what it is called by flag or environment may add a label, and
// nothing else (§9.3).
func asAgent(p protocol.Principal, how, host, where string) *protocol.Error {
	own := "agent:" + host
	label, labelled := strings.CutPrefix(string(p), own+".")
	if string(p) == own || labelled && label != "" && p.Valid() {
		return nil
	}
	return protocol.Fail(protocol.Unauthenticated, "This process belongs to an agent, by "+where+": it acts as "+own+
		" or "+own+".LABEL, whatever "+how+" says.").
		WithHint("hcpx --as "+own+" …").With("principal", string(p)).With("agent", own)
}
