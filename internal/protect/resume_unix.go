//go:build unix

package protect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// begunFile has what was about to be put back, in the journal: who is killed meanwhile leaves what the look after can't
// tell from what the run left.
const begunFile = "begun"

// mark notes the keys before anything of them is touched. What the run made is only moved, and its names stay unwritten.
func (m *mender) mark(keys []string) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return m.before.Nodes[k] == nil })
	if len(keys) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(m.journal, begunFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(keys, "\x00") + "\x00")
	return errors.Join(err, f.Close())
}

// resume takes up, once, what another process began: what it made beside a file goes.
func (m *mender) resume() error {
	if m.begun != nil {
		return nil
	}
	m.bad, m.begun = map[string]bool{}, map[string]bool{}
	text, err := os.ReadFile(filepath.Join(m.journal, begunFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, k := range strings.Split(string(text), "\x00") {
		if !m.before.within(k) || m.begun[k] {
			continue
		}
		if m.begun[k] = true; m.gentle {
			continue
		}
		dir, _, err := m.parent(k)
		if err != nil {
			continue // nothing can lie there
		}
		for i := 1; unix.Unlinkat(dir, m.beside(i), 0) == nil; i++ {
		}
		if err := unix.Close(dir); err != nil {
			return err
		}
	}
	return m.giveBack()
}

// beside is a name for what is not whole yet.
func (m *mender) beside(i int) string { return fmt.Sprintf(".hcpx-%s-%d", m.before.Run, i) }

// cutOff says that only the time of a file is left to be put back. It is tried once: some files take none.
func (m *mender) cutOff(k string, was, is *node) bool {
	return m.begun[k] && !m.tried && was != nil && is != nil && was.Kind == kindFile && was.SHA256 != "" && was.Mtime != is.Mtime
}
