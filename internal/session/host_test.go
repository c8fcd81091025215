package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hcpx/internal/places"
	"hcpx/internal/protocol"
)

// processes lays a /proc of its own: the first is the parent, each next one the parent of the one before. A value is
// an environment with its variables separated by blanks; "-" cannot be read.
func processes(t *testing.T, environs ...string) (proc string) {
	t.Helper()
	proc = t.TempDir()
	for i, environ := range environs {
		pid, parent := 100+i, 101+i
		if i == len(environs)-1 {
			parent = 0
		}
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"stat": fmt.Sprintf("%d (a) S 7 (b) S %d 1 1 0", pid, parent)}
		if environ != "-" {
			files["environ"] = strings.ReplaceAll(environ, " ", "\x00") + "\x00"
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return proc
}

// §9.3: each mark of each host, alone, makes an agent of the process; what people's terminals have too makes none.
func Test_9_3_AMarkInTheOwnEnvironment(t *testing.T) {
	marks := map[string]string{
		"CLAUDECODE=1": "claude-code", "CODEX_THREAD_ID=0199": "codex", "GEMINI_CLI=1": "gemini-cli", "QWEN_CODE=1": "qwen-code", "CURSOR_AGENT=1": "cursor",
		"CRUSH=1": "crush", "GOOSE_TERMINAL=1": "goose", "OPENCODE=1": "opencode", "AMP_CURRENT_THREAD_ID=T": "amp", "COPILOT_AGENT_SESSION_ID=x": "copilot-cli",
		"CLINE_ACTIVE=true": "cline", "ROO_ACTIVE=true": "roo", "ANTIGRAVITY_AGENT=1": "antigravity", "JUNIE_DATA=/x": "junie", "OZ_RUN_ID=x": "warp", "AUGMENT_AGENT=1": "augment",
		"AI_AGENT=Some_Agent": "some-agent", "AI_AGENT=claude-code/2.1/agent": "claude-code", "AI_AGENT=//": "unnamed", "AI_AGENT=a.b": "a-b", "AI_AGENT=" + strings.Repeat("x", 99): strings.Repeat("x", 40),
		"AGENT=amp": "amp", "AGENT=goose": "goose", "AGENT=crush": "crush", "AGENT=1": "unnamed",
		"AGENT=smith": "", "AGENT=": "", "CLAUDECODE=": "", "TERM_PROGRAM=vscode": "", "CURSOR_TRACE_ID=x": "", "OPENCODE_BIN_PATH=/x": "", "GOOSE_PROVIDER=x": "",
	}
	for mark, host := range marks {
		name, value, _ := strings.Cut(mark, "=")
		s, err := Resolve(Inputs{Getenv: env(name, value), Dir: t.TempDir(), User: "ada", Detect: true})
		want, how := protocol.Principal("human:ada"), "the OS user"
		if host != "" {
			want, how = protocol.Principal("agent:"+host), name+" in its environment"
		}
		if err != nil || s.Principal != want || s.How != how || !s.Principal.Valid() {
			t.Errorf("%s: %s by %s, %v", mark, s.Principal, s.How, err)
		}
		if s, err = Resolve(Inputs{Getenv: env(name, value), Dir: t.TempDir(), User: "ada"}); err != nil || s.Principal != "human:ada" {
			t.Errorf("%s with trust-flags: %s, %v", mark, s.Principal, err)
		}
	}
	if len(hostMarks) != 18 {
		t.Errorf("%d marks, and this test names 18", len(hostMarks))
	}
}

// §9.3: several marks: the most telling wins in one environment, the nearest process among several.
func Test_9_3_AMarkOfAnAncestor(t *testing.T) {
	deep := make([]string, maxAncestors+1)
	deep[maxAncestors] = "CLAUDECODE=1"
	long := "A=" + strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		own      string
		environs []string
		want     string
	}{
		"nobody":             {"HOME=/x", []string{"PATH=/bin", "-", "XCLAUDECODE=1", "CLAUDECODE"}, ""},
		"the parent":         {"", []string{"A=1 CLAUDECODE=1 B=2", "CRUSH=1"}, "claude-code"},
		"behind a closed":    {"", []string{"A=1", "-", "GEMINI_CLI=1"}, "gemini-cli"},
		"most telling":       {"", []string{"AGENT=goose AI_AGENT=x CRUSH=1 CODEX_THREAD_ID=1"}, "codex"},
		"own before parents": {"CRUSH=1", []string{"CLAUDECODE=1"}, "crush"},
		"after a long one":   {"", []string{long + " CLAUDECODE=1"}, "claude-code"},
		"the last looked at": {"", deep[1:], "claude-code"},
		"too far":            {"", deep, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, value, _ := strings.Cut(c.own, "=")
			in := Inputs{Getenv: env(key, value), Detect: true, Parent: 100, Proc: processes(t, c.environs...)}
			if host, where := in.agentHost(); host != c.want || (host == "") != (where == "") {
				t.Errorf("%q by %q, want %q", host, where, c.want)
			}
			if in.Detect = false; found(in) {
				t.Error("it was looked for")
			}
		})
	}
	in := Inputs{Getenv: env(), Detect: true, Parent: 100, Proc: processes(t, "A=1", "CLAUDECODE=1")}
	if _, where := in.agentHost(); where != "CLAUDECODE in the environment of process 101" {
		t.Error(where)
	}
	if in.Parent = 0; found(in) {
		t.Error("nobody's parent")
	}
}

// §9.3: an agent may say which of its own it is, and nothing else.
func Test_9_3_AnAgentNamesItselfAndItsLabelsOnly(t *testing.T) {
	for as, ok := range map[string]bool{
		"agent:claude-code": true, "agent:claude-code.review": true, "agent:claude-code.a.b": true,
		"human:ada": false, "service:ci": false, "mothership:m": false, "agent:codex": false, "agent:claude-code-2": false, "agent:claude-code.": false, "agent:claude": false,
		"agent:codex.claude-code": false, "root": false, "agent:claude-code.A": false,
	} {
		for name, in := range map[string]Inputs{
			"flag":     {Flags: Flags{As: as}, Getenv: env("CLAUDECODE", "1")},
			"variable": {Getenv: env("CLAUDECODE", "1", "HCP_PRINCIPAL", as)},
		} {
			in.Dir, in.User, in.Detect = t.TempDir(), "ada", true
			s, err := Resolve(in)
			if ok && (err != nil || string(s.Principal) != as) || !ok && (err == nil || err.Code != protocol.Unauthenticated || err.Hint == "") {
				t.Errorf("%s %s: %s, %v", name, as, s.Principal, err)
			}
			if in.Detect = false; strings.HasPrefix(as, "human:") {
				if s, err = Resolve(in); err != nil || string(s.Principal) != as {
					t.Errorf("trust-flags, %s %s: %s, %v", name, as, s.Principal, err)
				}
			}
		}
	}
	// An empty flag says nothing by mistake, and is not the agent either.
	if _, err := Resolve(Inputs{Getenv: env("CLAUDECODE", "1"), Detect: true, Nobody: "the flag --as", Dir: t.TempDir(), Closed: places.Places{}}); err == nil {
		t.Error("an empty --as was taken")
	}
}

func FuzzEnviron(f *testing.F) {
	f.Add([]byte("A=1\x00CLAUDECODE=1\x00"), []byte("1 (x) S 7 1"))
	f.Add([]byte("AI_AGENT=\xff\x00=\x00AGENT"), []byte(") ) (1"))
	f.Fuzz(func(t *testing.T, environ, stat []byte) {
		if _, host := firstMark(environ); host != "" && !protocol.Principal("agent:"+host).Valid() {
			t.Errorf("%q", host)
		}
		parentOf(stat)
	})
}

// BenchmarkAncestors is what the look costs from here up to the first process, in microseconds.
func BenchmarkAncestors(b *testing.B) {
	in := Inputs{Getenv: env(), Detect: true, Parent: os.Getppid(), Proc: "/proc"}
	b.ReportAllocs()
	for b.Loop() {
		in.agentHost()
	}
}

func found(in Inputs) bool {
	host, _ := in.agentHost()
	return host != ""
}
