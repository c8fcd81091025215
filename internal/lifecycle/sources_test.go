package lifecycle

import (
	"os"
	"path/filepath"
	"testing"

	"hcpx/internal/protocol"
)

// §9.3: packs come from where the settings say, wherever a link leads; what comes with the program is "shipped".
func Test_9_3_PacksComeFromNamedSources(t *testing.T) {
	w := newWorld(t)
	listed, other := w.pack("listed"), w.pack("other")
	real, err := filepath.EvalSymlinks(filepath.Dir(listed))
	if err != nil {
		t.Fatal(err)
	}
	w.Sources = []string{filepath.Join(real, "listed*")}
	try := func(name string) *protocol.Error {
		_, err := w.Install(ada, []string{name}, InstallOptions{})
		return err
	}
	if err := try(listed); err != nil {
		t.Fatal(err)
	}
	refused(t, try(other), protocol.OperatorRequired)
	link := filepath.Join(filepath.Dir(listed), "listed-link")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	refused(t, try(link), protocol.OperatorRequired)
	refused(t, try(filepath.Join(listed, "..", filepath.Base(other))), protocol.OperatorRequired)
	if _, err := w.Add(ada, other, AddOptions{Yes: true}); code(err) != protocol.OperatorRequired {
		t.Errorf("add: %v", err)
	}
	if err := w.sourced("git", "shipped"); code(err) != protocol.OperatorRequired {
		t.Errorf("shipped: %v", err)
	}
	if w.Sources = append(w.Sources, "shipped"); w.sourced("git", "shipped") != nil {
		t.Error("shipped was refused")
	}
	if w.Sources = []string{}; try(listed) == nil {
		t.Error("an empty list let a pack in")
	}
	if w.Sources = nil; try(other) != nil {
		t.Error("no list refused")
	}
}
