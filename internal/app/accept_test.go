package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/sandbox"
	"hcpx/internal/settings"
)

// §10.5: what the operator can accept in the settings is what the sandbox knows, word for word.
func Test_10_5_AcceptIsTheSandboxesList(t *testing.T) {
	home := t.TempDir()
	text := fmt.Sprintf("sandbox.accept = [\"%s\"]\n", strings.Join(sandbox.Accepted(), `", "`))
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load(home, settings.ReadManaged(""))
	if err != nil || !slices.Equal(s.Accept, sandbox.Accepted()) {
		t.Fatalf("%v %v", s, err)
	}
	for _, row := range s.Rows() {
		if row.Key == "sandbox.accept" && row.Value != strings.Join(sandbox.Accepted(), ", ") {
			t.Errorf("%+v", row)
		}
	}
}
