package sandbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// asUsers tests as this user, and as an ordinary one.
func asUsers(t *testing.T, do func(*testing.T)) {
	redteamtest.Users(t, func(t *testing.T, _ string) { do(t) })
}

// weak is a kernel without what the broker needs, and what the operator says to that.
type weak struct {
	name     string
	spoil    func(*sandbox.Kernel)
	accept   []string
	degraded []string // the rules that are kept in a weaker way
}

func weakKernels() []weak {
	return []weak{
		{"no user notification", func(k *sandbox.Kernel) { k.Notify = false }, []string{"metadata"}, []string{"metadata"}},
		{"no openat2", func(k *sandbox.Kernel) { k.Openat2 = false }, []string{"metadata"}, []string{"metadata"}},
		{"ABI 4, no openat2", func(k *sandbox.Kernel) { k.ABI, k.Openat2 = 4, false }, []string{"metadata"}, []string{"metadata"}},
		{"ABI 4, no user notification", func(k *sandbox.Kernel) { k.ABI, k.Notify = 4, false }, []string{"signals", "metadata"}, []string{"signals", "metadata"}},
		{"nothing is missing", func(*sandbox.Kernel) {}, []string{"signals", "metadata"}, nil},
	}
}

func (w weak) kernel() *sandbox.Kernel {
	k := able()
	w.spoil(&k)
	return &k
}

// §10.5: what the operator accepted runs with exactly that degradation, and report, plan and doctor say so. What
// is weaker is what a command can do, never what it can reach.
func Test_10_5_accepted_degradation(t *testing.T) { asUsers(t, acceptedDegradation) }

func acceptedDegradation(t *testing.T) {
	s := newScene(t)
	for _, w := range weakKernels() {
		t.Run(w.name, func(t *testing.T) {
			s.in(w.kernel(), w.accept...)
			has := func(rule string) bool { return slices.Contains(w.degraded, rule) }
			o := sandboxtest.Exec(t, s.sandbox, s.spec("nothing"))
			want := append(slices.Clone(w.degraded), "memory", "processes")
			if plan := s.sandbox.Jail(s.spec("nothing"), "/home").Degraded; !slices.Equal(o.Report.Degraded, want) || !slices.Equal(plan, want) {
				t.Errorf("report %v, plan %v, want %v", o.Report.Degraded, plan, want)
			}
			for _, row := range s.sandbox.Facts().Rules {
				if (row.State == "degraded") != slices.Contains(want, row.Name) || row.State == "missing" && row.Name != "network-hosts" && row.Name != "canary" {
					t.Errorf("%+v", row)
				}
			}
			for attack, target := range map[string]string{"chmod": s.secret, "chown": s.secret, "utime": s.lent, "fchmod": s.lent, "read": s.secret} {
				s.reset()
				if o := sandboxtest.Exec(t, s.sandbox, s.spec(attack, target)); o.Exit != 1 {
					t.Errorf("%s %s worked", attack, target)
				}
			}
			for _, attack := range []string{"chmod", "fchmod", "utime"} {
				s.reset()
				if o := sandboxtest.Exec(t, s.sandbox, s.spec(attack, s.file)); (o.Exit != 0) != has("metadata") {
					t.Errorf("%s in the jail: exit %d %s", attack, o.Exit, o.Stderr)
				}
			}
			for _, verb := range []string{"child", "own", "all"} {
				spec := s.family(verb)
				spec.Limits.Wall, spec.Limits.Grace = 20*time.Second, 100*time.Millisecond
				o := sandboxtest.Exec(t, s.sandbox, spec)
				if o.TimedOut || (o.Exit != 0) != has("signals") || has("signals") && !strings.Contains(string(o.Stderr), "operation not permitted") {
					t.Errorf("%s: exit %d %s %s", verb, o.Exit, o.Signal, o.Stderr)
				}
			}
			for _, how := range []string{"near", "away", "daemon"} {
				o := sandboxtest.Exec(t, s.sandbox, sandboxtest.Kind{}.Spec(t, "leave", how))
				if how != "near" && has("signals") { // no session begins
					if o.Exit == 0 || o.Report.Killed != 0 {
						t.Errorf("%s: %+v", how, o)
					}
				} else if o.Exit != 0 || o.Report.Killed != 1 {
					t.Errorf("%s: %+v", how, o)
				}
			}
			spec := s.spec("bomb", "60")
			spec.Limits.Wall, spec.Limits.Grace = time.Second, 100*time.Millisecond
			if o := sandboxtest.Exec(t, s.sandbox, spec); !o.TimedOut {
				t.Errorf("%+v", o)
			}
			if left := processes(t, attackArg, "bomb"); len(left) > 0 {
				t.Errorf("survivors: %v", left)
			}
		})
	}
}

// §10.5: half of what would be needed accepts nothing, and a word that is none does not either.
func Test_10_5_accepting_less_than_needed(t *testing.T) {
	kernel := able()
	kernel.ABI, kernel.Notify = 4, false
	for rule, accept := range map[string][]string{"signals": {"metadata"}, "metadata": {"signals"}} {
		s := sandbox.New(sandbox.Options{Scratch: t.TempDir() + "/scratch", Kernel: &kernel, Accept: accept})
		err := s.Check(sandboxtest.Kind{}.Spec(t, "exit", "0"))
		if err == nil || err.Code != protocol.SandboxUnavailable || err.Details["rule"] != rule || !strings.Contains(err.Hint, `["metadata", "signals"]`) {
			t.Errorf("%v: %v", accept, err)
		}
	}
	kernel.ABI = 2
	for _, accept := range [][]string{{"metadata", "signals", "files", "*", ""}, {"metadata signals files"}} {
		s := sandbox.New(sandbox.Options{Scratch: t.TempDir() + "/scratch", Kernel: &kernel, Accept: accept})
		if err := s.Check(sandboxtest.Kind{}.Spec(t, "exit", "0")); err == nil || err.Details["rule"] != "files" || err.Details["setting"] != nil {
			t.Errorf("%v: %v", accept, err)
		}
	}
}

// §10.5: the canary proves the sandbox too where signals go through the broker, and where the operator accepted
// that metadata and signals are refused.
func Test_10_5_canary_of_other_postures(t *testing.T) {
	weak := older(4)
	weak.Notify = false
	for name, change := range map[string]func(*sandbox.Options){
		"brokered": func(o *sandbox.Options) { o.Kernel = older(5) },
		"refused":  func(o *sandbox.Options) { o.Kernel, o.Accept = weak, sandbox.Accepted() },
	} {
		t.Run(name, func(t *testing.T) {
			if o := sandboxtest.Exec(t, proving(t, change), nothing(t)); o.Exit != 0 {
				t.Errorf("%+v", o)
			}
		})
	}
}
