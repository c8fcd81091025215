package sandbox

import (
	"fmt"
	"strings"
	"testing"
)

// §10.5: what the canary could do and what it could not try are told apart, and either refuses.
func Test_10_5_canary_tells_what_it_found(t *testing.T) {
	for _, f := range []findings{{undecided: []string{"survive"}}, {worked: []string{"read"}}, {[]string{"read"}, []string{"survive"}}} {
		err := f.refusal()
		if err == nil || err.Details["rule"] != "canary" {
			t.Fatalf("%+v: %v", f, err)
		}
		for key, want := range map[string][]string{"worked": f.worked, "undecided": f.undecided} {
			if got := err.Details[key]; (got != nil) != (want != nil) || want != nil && (fmt.Sprint(got) != fmt.Sprint(want) || key == "worked" && !strings.Contains(err.Message, want[0])) {
				t.Errorf("%+v: %s is %v", f, key, got)
			}
		}
	}
	if err := (findings{}).refusal(); err != nil {
		t.Error(err)
	}
}
