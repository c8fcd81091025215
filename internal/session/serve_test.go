package session

import (
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

// §9.3: what a server for an agent host acts as: by marks, else by the client's name; --as names a service, or the
// marked agent's own label; never a person.
func Test_9_3_AServerIsNeverAPerson(t *testing.T) {
	for _, tt := range []struct {
		name, as, mark, person string
		nobody                 Nobody
		want                   protocol.Principal
		refused                bool
	}{
		{name: "nothing said", want: ""},
		{name: "a person in the environment", person: "human:ada", want: ""},
		{name: "a mark", mark: "CLAUDECODE", person: "human:ada", want: "agent:claude-code"},
		{name: "a service", as: "service:ci", want: "service:ci"},
		{name: "a service of a marked host", as: "service:ci", mark: "CLAUDECODE", want: "service:ci"},
		{name: "its own label", as: "agent:claude-code.docs", mark: "CLAUDECODE", want: "agent:claude-code.docs"},
		{name: "another agent", as: "agent:codex", mark: "CLAUDECODE", want: "agent:codex", refused: true},
		{name: "an agent without a mark", as: "agent:codex", want: "agent:codex", refused: true},
		{name: "a person", as: "human:ada", want: "human:ada", refused: true},
		{name: "a person of a marked host", as: "human:ada", mark: "CLAUDECODE", want: "human:ada", refused: true},
		{name: "a mothership", as: "mothership:x", want: "mothership:x", refused: true},
		{name: "no form", as: "service:", want: "service:", refused: true},
		{name: "an empty --as", nobody: flagAs, want: "", refused: true},
	} {
		in := Inputs{Flags: Flags{As: tt.as}, Getenv: env(tt.mark, "1", "HCP_PRINCIPAL", tt.person), Dir: t.TempDir(), User: "ada", Detect: true, Nobody: tt.nobody}
		s, err := Serve(in)
		if s.Principal != tt.want || (err != nil) != tt.refused || err != nil && err.Code != protocol.Unauthenticated {
			t.Errorf("%s: %q, %v", tt.name, s.Principal, err)
		}
	}
}

// §9.3: a client's name makes a valid agent of any text, and never a label of another.
func Test_9_3_AClientsNameIsAnAgents(t *testing.T) {
	for name, want := range map[string]protocol.Principal{
		"claude-ai": "agent:claude-ai", "Visual Studio Code": "agent:visual-studio-code", "": "agent:mcp", "!!!": "agent:mcp", "é": "agent:mcp",
		"claude-code.docs": "agent:claude-code-docs", "human:ada": "agent:human-ada", "a\nb": "agent:a-b", strings.Repeat("x", 500): protocol.Principal("agent:" + strings.Repeat("x", 40)),
		strings.Repeat("x", 39) + " y": protocol.Principal("agent:" + strings.Repeat("x", 39)),
	} {
		if got := Client(name); got != want || !got.Valid() {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// §15.2: the own environment is what a host gives its server; only an ancestor with a mark makes it an agent's shell.
func Test_15_2_InsideIsByAncestors(t *testing.T) {
	for _, tt := range []struct {
		name, own string
		above     []string
		detect    bool
		want      bool
	}{
		{"a host that marks its server", "CLAUDECODE", []string{"A=1", "B=1"}, true, false},
		{"an agent's shell", "CLAUDECODE", []string{"CLAUDECODE=1", "A=1"}, true, true},
		{"a shell that hides it", "", []string{"A=1", "CODEX_THREAD_ID=1"}, true, true},
		{"trust-flags", "", []string{"CLAUDECODE=1"}, false, false},
	} {
		in := Inputs{Getenv: env(tt.own, "1"), Detect: tt.detect, Parent: 100, Proc: processes(t, tt.above...)}
		if got := Inside(in); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
