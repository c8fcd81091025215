package protect

import (
	"errors"
	"os"
	"testing"
	"time"
)

// Who is killed while it puts back leaves what the next one ends: the time of a file whose content stands again, what
// lay beside a file, and an index that went and isn't back (§10.2).
func Test_10_2_RepairThatWasCutOff(t *testing.T) {
	s := newSnare(t)
	s.write(s.root+"/.vscode/tasks.json", "{}", 0o644)
	s.trap("sub")
	time.Sleep(20 * time.Millisecond)
	guard := s.begin("run")
	was := picture(t, s.root)
	s.write(s.root+"/Makefile", "evil", 0o644)
	s.write(s.root+"/.vscode/tasks.json", "evil", 0o644)
	index := indexOf(2, "", indexItem("sub", 0o160000, s.oid, "\x00"))
	s.write(s.root+"/.git/index", index, 0o644)
	killed(t, guard)
	left, err := Left(s.home)
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	must(t, left[0].judge(nil, false, func(m *mender) error {
		d, err := m.differ()
		if len(d.keys) != 3 {
			t.Error(d.keys)
		}
		must(t, m.mark(d.keys))
		s.write(s.root+"/Makefile", "all:\n", 0o644)
		s.write(s.root+"/.vscode/tasks.json", "{}", 0o644)
		s.write(s.root+"/.vscode/"+m.beside(1), "{", 0o600)
		s.write(s.root+"/.vscode/"+m.beside(2), "{", 0o600)
		return errors.Join(err, os.Remove(s.root+"/.git/index"))
	}))
	var refused *LeftError
	if err := Pending(s.watch("next")); !errors.As(err, &refused) {
		t.Error(err)
	}
	changes, _, err := left[0].Mend()
	if err != nil || len(changes) != 3 {
		t.Errorf("%+v %v", changes, err)
	}
	if now := picture(t, s.root); now != was {
		t.Errorf("%s\n%s", was, now)
	}
	if left, err := Left(s.home); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}
