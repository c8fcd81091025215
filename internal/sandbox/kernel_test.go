package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// able is a kernel that can do everything.
func able() sandbox.Kernel {
	return sandbox.Kernel{System: "linux/amd64", Supported: true, ABI: 7, Errata: 7, Filter: true, Notify: true, CloseRange: true, Openat2: true, GetFd: true}
}

// §10.5: every kernel that cannot enforce a rule refuses, with the rule and a sentence of its own, and makes
// nothing.
func Test_10_5_fails_closed(t *testing.T) {
	messages := map[string]string{}
	for _, c := range []struct {
		name, rule, says string
		spoil            func(*sandbox.Kernel)
	}{
		{"no Landlock", "files", "no Landlock", func(k *sandbox.Kernel) { k.ABI = 0 }},
		{"ABI 1", "files", "ABI 1 ", func(k *sandbox.Kernel) { k.ABI = 1 }},
		{"ABI 2", "files", "ABI 2 ", func(k *sandbox.Kernel) { k.ABI = 2 }},
		{"ABI 3, no user notification", "signals", "ABI 3 ", func(k *sandbox.Kernel) { k.ABI, k.Notify = 3, false }},
		{"ABI 4, no user notification", "signals", "ABI 4 ", func(k *sandbox.Kernel) { k.ABI, k.Notify = 4, false }},
		{"ABI 5, no user notification", "signals", "ABI 5 ", func(k *sandbox.Kernel) { k.ABI, k.Notify = 5, false }},
		{"ABI 5, no openat2", "metadata", "openat2", func(k *sandbox.Kernel) { k.ABI, k.Openat2 = 5, false }},
		{"no seccomp", "system-calls", "no seccomp filters", func(k *sandbox.Kernel) { k.Filter = false }},
		{"no user notification", "metadata", "user notification", func(k *sandbox.Kernel) { k.Notify = false }},
		{"no openat2", "metadata", "openat2", func(k *sandbox.Kernel) { k.Openat2 = false }},
		{"no close_range", "descriptors", "close_range", func(k *sandbox.Kernel) { k.CloseRange = false }},
		{"a container that blocks Landlock and all of seccomp", "system-calls", "seccomp", func(k *sandbox.Kernel) { k.ABI, k.Filter, k.Notify = 0, false, false }},
		{"a container that blocks Landlock and user notification", "files", "no Landlock", func(k *sandbox.Kernel) { k.ABI, k.Notify = 0, false }},
		{"nothing at all", "system-calls", "no seccomp filters", func(k *sandbox.Kernel) { *k = sandbox.Kernel{System: "linux/amd64", Supported: true} }},
		{"another system", "system-calls", "darwin/arm64", func(k *sandbox.Kernel) { *k = sandbox.Kernel{System: "darwin/arm64"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			kernel := able()
			c.spoil(&kernel)
			scratch := filepath.Join(t.TempDir(), "scratch")
			s := sandbox.New(sandbox.Options{Scratch: scratch, Kernel: &kernel})
			spec := sandboxtest.Kind{}.Spec(t, "exit", "0")
			for question, err := range map[string]*protocol.Error{"check": s.Check(spec), "prepare": prepareError(s, spec)} {
				if err == nil || err.Code != protocol.SandboxUnavailable || err.Details["rule"] != c.rule || !strings.Contains(err.Message, c.says) {
					t.Errorf("%s: %v %v", question, err, err.Details)
				}
				if err.Code.Exit() != 3 {
					t.Errorf("exit %d", err.Code.Exit())
				}
				// What the operator may accept is named with the setting, and what would do is in the hint; nothing else is.
				accept, setting := "", err.Details["setting"]
				if slices.Contains(sandbox.Accepted(), c.rule) {
					accept = "sandbox.accept"
				}
				if accept == "" && setting != nil || accept != "" && setting != accept || (accept != "") != strings.Contains(err.Hint, `"`+c.rule+`"`) {
					t.Errorf("%s: setting %v, hint %q", question, setting, err.Hint)
				}
				messages[err.Message] = c.name
			}
			if _, err := os.Stat(scratch); err == nil {
				t.Error("a refusal made a directory")
			}
			facts := s.Facts()
			if facts.Backend != "" {
				t.Errorf("backend %q", facts.Backend)
			}
			if row := find(facts, c.rule); row.State != "missing" || row.Detail == "" {
				t.Errorf("%+v", row)
			}
			// Native is what both sides accepted; it runs on any kernel and reports what it lacks.
			if o := sandboxtest.Exec(t, s, sandboxtest.Kind{Native: true}.Spec(t, "exit", "0")); o.Report.Backend != "native" {
				t.Errorf("%+v", o.Report)
			}
		})
	}
	// Three have no seccomp filter, two no Landlock, and two no openat2 in the first place.
	if len(messages) != 11 {
		t.Errorf("%d different messages: %v", len(messages), messages)
	}
}

func prepareError(s sandbox.Sandbox, spec *sandbox.Spec) *protocol.Error {
	_, err := s.Prepare(spec)
	return err
}

func find(f sandbox.Facts, rule string) sandbox.Rule {
	for _, row := range f.Rules {
		if row.Name == rule {
			return row
		}
	}
	return sandbox.Rule{}
}

// §10.5: doctor's table names each rule once, with what enforces it and its state.
func Test_10_5_rules_table(t *testing.T) {
	kernel := able()
	facts := sandbox.New(sandbox.Options{Kernel: &kernel}).Facts()
	if facts.Backend != "landlock" || facts.ABI != 7 {
		t.Errorf("%+v", facts)
	}
	seen := map[string]bool{}
	for _, row := range facts.Rules {
		if row.State != "enforced" && row.State != "degraded" && row.State != "missing" {
			t.Errorf("%+v", row)
		}
		if seen[row.Name] || row.Mechanism == "" || row.State == "enforced" && row.Detail != "" || row.State != "enforced" && row.Detail == "" {
			t.Errorf("%+v", row)
		}
		seen[row.Name] = true
	}
	for rule, state := range map[string]string{"files": "enforced", "network-hosts": "enforced", "memory": "degraded", "processes": "degraded",
		"cpu": "enforced", "open-files": "enforced", "file-size": "enforced", "core-dumps": "enforced", "metadata": "enforced", "signals": "enforced", "runtime": "enforced"} {
		if find(facts, rule).State != state {
			t.Errorf("%s is not %s", rule, state)
		}
	}
}

// §10.5: where nothing can confine, no row is called enforced that only a confined run would have.
func Test_10_5_nothing_enforced_without_a_backend(t *testing.T) {
	kernel := able()
	kernel.ABI, kernel.Notify = 5, false
	for _, row := range sandbox.New(sandbox.Options{Kernel: &kernel}).Facts().Rules {
		switch row.Name {
		case "system-calls", "files", "programs", "abstract-sockets", "descriptors": // what this kernel has
		default:
			if row.State != "missing" || row.Detail == "" {
				t.Errorf("%+v", row)
			}
		}
	}
}

// §10.5: at ABI 6 the kernel keeps signals, below it hcpx does; each of them confines, with the mechanism that it is.
func Test_10_5_signals_by_ABI(t *testing.T) {
	for abi := 3; abi <= 7; abi++ {
		kernel := able()
		kernel.ABI = abi
		facts := sandbox.New(sandbox.Options{Kernel: &kernel}).Facts()
		for rule, word := range map[string]string{"signals": "Landlock signal scope", "abstract-sockets": "Landlock scope", "survivors": "Landlock domain"} {
			row := find(facts, rule)
			if row.State != "enforced" || strings.Contains(row.Mechanism, word) != (abi >= 6) {
				t.Errorf("ABI %d: %+v", abi, row)
			}
		}
		if facts.Backend != "landlock" || facts.ABI != abi {
			t.Errorf("%+v", facts)
		}
	}
}

// §10.5: a kernel that can do much confines nothing where one thing is missing, and then no row is kept.
func Test_10_5_no_row_without_a_run(t *testing.T) {
	for name, spoil := range map[string]func(*sandbox.Kernel){
		"no Landlock": func(k *sandbox.Kernel) { k.ABI = 0 }, "no close_range": func(k *sandbox.Kernel) { k.CloseRange = false },
	} {
		kernel := able()
		spoil(&kernel)
		for _, row := range sandbox.New(sandbox.Options{Kernel: &kernel}).Facts().Rules {
			if row.State != "missing" || row.Detail == "" {
				t.Errorf("%s: %+v", name, row)
			}
		}
	}
}
