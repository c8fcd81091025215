//go:build unix

package approval

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hcpx/internal/store"
)

// §15.2: a record that is none, or is no file, confirms nothing and stops no other question.
func Test_15_2_ADamagedRecordStopsNobody(t *testing.T) {
	home := t.TempDir()
	st := store.OpenFS(home, store.Options{Now: time.Now})
	ids := 0
	b := &Book{Shelf: st.Shelf(Kind), Now: time.Now, NewID: func() string { ids++; return "id" + string(rune('0'+ids)) }}
	q := Request{Principal: "agent:x", Canonical: []byte("q")}
	a, _, err := b.Ask(q, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, Kind, a.ID)
	names, err := filepath.Glob(path + "*")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := os.WriteFile(names[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, why, err := b.Usable(a.ID, q); err != nil || why != ReasonUnknown {
		t.Errorf("%q %v", why, err)
	}
	if err := syscall.Mkfifo(filepath.Join(filepath.Dir(names[0]), "fifo"+filepath.Ext(names[0])), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, fresh, err := b.Ask(q, ""); err != nil || !fresh {
		t.Errorf("%v %v", fresh, err)
	}
}
