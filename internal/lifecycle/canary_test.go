package lifecycle

import (
	"context"
	"testing"

	"hcpx/internal/sandbox"
)

// leaky is a sandbox whose canary got out, or was not let fly.
type leaky struct {
	*noBox
	proved sandbox.Rule
}

func (l leaky) Prove(context.Context) sandbox.Rule { return l.proved }

func (l leaky) Facts() sandbox.Facts {
	f := l.noBox.Facts()
	f.Rules = append(f.Rules, sandbox.Rule{Name: "memory", State: "degraded", Detail: "sampled"}, sandbox.Rule{Name: "canary", State: "missing", Detail: "Not tried yet."})
	return f
}

// §10.5: after a canary that failed doctor calls no rule enforced or degraded; a canary that was not there to be tried
// changes nothing.
func Test_10_5_doctor_after_a_failed_canary(t *testing.T) {
	for detail, want := range map[string]map[string]string{
		"The sandbox does not hold.": {"exec": "missing", "memory": "missing", "canary": "missing"},
		"Not tried yet.":             {"exec": "enforced", "memory": "degraded", "canary": "missing"},
	} {
		w := newWorld(t)
		w.Gate.Sandbox = leaky{w.box, sandbox.Rule{Name: "canary", State: "missing", Detail: detail}}
		w.Scratch = nil
		got := map[string]string{}
		for _, r := range w.Doctor(ada).Rules {
			got[r.Rule] = r.State
			if r.State == "missing" && r.Detail == "" {
				t.Errorf("%+v", r)
			}
		}
		for rule, state := range want {
			if got[rule] != state {
				t.Errorf("%s: %s is %q, want %q", detail, rule, got[rule], state)
			}
		}
	}
}
