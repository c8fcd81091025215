package pipeline

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/adapter"
	"hcpx/internal/protect"
	"hcpx/internal/sandbox"
)

// stuck is a run whose private directory stays.
type stuck struct{ sandbox.Box }

func (stuck) Close() error { return errors.New("device or resource busy") }

// §15.4: what is known of a run stands side by side in its outcome; nothing takes another thing's place.
func Test_15_4_DetailHoldsAll(t *testing.T) {
	r := &run{changes: []protect.Change{{Path: "Makefile"}}, box: stuck{}}
	out := &adapter.Output{Replaced: 1, Outcome: &sandbox.Outcome{Limit: "cpu", Denied: []string{"name a.example"}}}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(r.detail(out), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"cleanup", "protected", "total", "replaced", "limit", "denied"} {
		if got[key] == nil {
			t.Errorf("%s is missing in %v", key, got)
		}
	}
	if diff := cmp.Diff(6, len(got)); diff != "" {
		t.Error(diff)
	}
	if d := (&run{}).detail(&adapter.Output{Outcome: &sandbox.Outcome{}}); d != nil {
		t.Errorf("nothing is known, and the detail is %s", d)
	}
}
