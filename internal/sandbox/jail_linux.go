package sandbox

import (
	"strings"

	"golang.org/x/sys/unix"
)

// jail describes the grants that prepare would make rules of: those of the Spec, of the private directory, and of
// every command.
func (c *confiner) jail(spec *Spec, home string) Jail {
	w := &world{spec: spec}
	return Jail{Declared: accesses(declared(spec)), Own: accesses(parts(home, len(spec.Files) > 0)), Base: accesses(c.shared(w))}
}

func accesses(grants []grant) []Access {
	list := make([]Access, len(grants))
	for i, g := range grants {
		list[i] = g.access()
	}
	return list
}

// access is a grant in words. A program is read by whoever starts it.
func (g grant) access() Access {
	return Access{
		Path:    g.path,
		Read:    g.rights&unix.LANDLOCK_ACCESS_FS_READ_FILE != 0,
		Write:   g.rights&unix.LANDLOCK_ACCESS_FS_WRITE_FILE != 0,
		Execute: g.rights&unix.LANDLOCK_ACCESS_FS_EXECUTE != 0,
		Tree:    g.rights&unix.LANDLOCK_ACCESS_FS_READ_DIR != 0,
		Device:  strings.HasPrefix(g.path, "/dev/"),
	}
}
