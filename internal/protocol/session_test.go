package protocol

import "testing"

// §9.3: a command that acts in a session says which, where it is not the usual one.
func Test_9_3_InSession(t *testing.T) {
	for session, want := range map[string]string{
		"":         "hcpx activate git",
		"default":  "hcpx activate git",
		"other":    "hcpx activate git --session other",
		"it's two": `hcpx activate git --session 'it'\''s two'`,
	} {
		if got := InSession("hcpx activate git", session); got != want {
			t.Errorf("%q: %s", session, got)
		}
	}
}
