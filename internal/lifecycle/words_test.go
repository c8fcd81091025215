package lifecycle

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

func Test_11_ARefusedInstallCountsItsIssuesAndHintsAtItsSource(t *testing.T) {
	w := newWorld(t)
	dir := w.pack("notes", `"argv": ["show"]`, `"argv": ["{gone}"]`)
	_, err := w.Install(ada, []string{dir}, InstallOptions{})
	refused(t, err, protocol.LintFailed)
	if err.Hint != "hcpx lint "+dir || strings.Contains(err.Message, "wrap.placeholder") {
		t.Errorf("%s, hint %s", err.Message, err.Hint)
	}
	archive := filepath.Join(t.TempDir(), "notes.tgz")
	if _, fault := exec.LookPath("tar"); fault != nil {
		t.Skip("no tar here")
	}
	if out, fault := exec.Command("tar", "-czf", archive, "-C", filepath.Dir(dir), "notes").CombinedOutput(); fault != nil {
		t.Fatalf("%v: %s", fault, out)
	}
	_, err = w.Install(ada, []string{archive}, InstallOptions{})
	refused(t, err, protocol.LintFailed)
	if !strings.HasSuffix(err.Hint, "hcpx install "+archive) {
		t.Errorf("hint %s", err.Hint)
	}
}

// What became of each pack stands with it, once.
func Test_11_1_SeveralPacksOneFault(t *testing.T) {
	w := newWorld(t)
	w.install(w.pack("notes"), InstallOptions{})
	_, err := w.Install(ada, []string{w.pack("memos"), w.pack("notes", "Keeps notes.", "Keeps other notes.")}, InstallOptions{})
	refused(t, err, protocol.DigestConflict)
	packs := err.Details["packs"].([]InstalledPack)
	if strings.Contains(err.Message, packs[1].Error.Message) || !strings.Contains(err.Message, "notes") || strings.Contains(err.Message, "memos") {
		t.Errorf("%s", err.Message)
	}
}

func Test_11_1_NotesOfInstallAreSentences(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	up := w.install(w.pack("notes", `"1.0.0"`, `"2.0.0"`), InstallOptions{})
	if !up.Activated || up.Note != "" {
		t.Errorf("%+v", up)
	}
	down := w.install(w.pack("notes"), InstallOptions{})
	if !down.Activated || down.Note != "This is an older version than 2.0.0, which hcpx rollback notes brings back." {
		t.Errorf("%+v", down)
	}
	if fresh := w.install(w.pack("memos"), InstallOptions{}); fresh.Activated {
		t.Errorf("%+v", fresh)
	}
}
