package gate

import (
	"testing"

	"hcpx/internal/store"
)

// §9.3: what a session lacks is done in that session.
func Test_9_3_HintsNameTheSession(t *testing.T) {
	g := &Gate{}
	if err := g.Activated(&store.State{}, "other", "tool"); err == nil || err.Hint != "hcpx activate tool --session other" {
		t.Errorf("%+v", err)
	}
	if err := g.Activated(&store.State{}, store.DefaultSession, "tool"); err == nil || err.Hint != "hcpx activate tool" {
		t.Errorf("%+v", err)
	}
}
