package lifecycle

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

// §10.2: neither install nor allow lets a pack read what stays closed to every pack: both say why, and the
// allow-list does not hold it.
func Test_10_2_AClosedReadIsNeverAllowed(t *testing.T) {
	w := newWorld(t)
	w.Gate.Places.Store = filepath.Join(w.Gate.Places.Home, ".config", "acme") // the operator's home of the store
	const path = "~/.config/acme/notes.toml"
	view, err := w.Install(ada, []string{w.pack("notes")}, InstallOptions{AllowBin: true, AllowRead: true})
	if err != nil {
		t.Fatal(err)
	}
	one := view.Packs[0]
	if slices.Contains(one.Allowed, path) {
		t.Errorf("install allowed it: %v", one.Allowed)
	}
	if i := slices.IndexFunc(one.Needs, func(n Need) bool { return n.Name == path }); i < 0 || !strings.Contains(one.Needs[i].Reason, "the store") {
		t.Errorf("install does not say why: %+v", one.Needs)
	}
	_, err = w.Allow(ada, AllowRequest{ReadPack: "notes", Reads: []string{path}})
	refused(t, err, protocol.UsageError)
	if err != nil && !strings.Contains(err.Message, "the store") {
		t.Errorf("allow does not say why: %s", err.Message)
	}
	st, failure := w.state()
	if failure != nil || len(st.Reads) != 0 {
		t.Errorf("allowed: %+v %v", st.Reads, failure)
	}
}
