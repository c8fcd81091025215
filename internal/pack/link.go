package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"strings"
)

// maxHops is how many links may lead from one to the next.
const maxHops = 40

// link takes a symbolic link, which must be relative and stay inside the pack (§2.1).
func (w *walker) link(name string) {
	target, err := fs.ReadLink(w.fsys, name)
	if err != nil {
		w.issue("pack.unreadable", name, "The link cannot be read: "+reason(err)+".")
		return
	}
	if why := escape(w.fsys, name, target); why != "" {
		w.issue("pack.symlink-escape", name, "The link "+why+".")
		return
	}
	sum := sha256.Sum256([]byte(target))
	w.files = append(w.files, File{Path: name, Mode: 'l', Size: int64(len(target)), Sum: hex.EncodeToString(sum[:])})
}

// escape says why a link may not stand in a pack; "" when it may. Each step of the target is looked at, as
// the system would follow it; what does not exist is followed by name alone.
func escape(fsys fs.FS, name, target string) string {
	var at []string
	todo := strings.Split(path.Dir(name)+"/"+target, "/")
	if absolute(target) {
		return "is absolute"
	}
	for hops := 0; len(todo) > 0; {
		step := todo[0]
		todo = todo[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				return "leads out of the pack"
			}
			at = at[:len(at)-1]
			continue
		}
		at = append(at, step)
		here := strings.Join(at, "/")
		info, err := fs.Lstat(fsys, here)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		next, err := fs.ReadLink(fsys, here)
		if err != nil || absolute(next) {
			return "leads over one that is absolute or unreadable"
		}
		if hops++; hops > maxHops {
			return "leads in a circle"
		}
		at = at[:len(at)-1]
		todo = append(strings.Split(next, "/"), todo...)
	}
	return ""
}

// absolute says whether a link's target names a place by itself, on any system.
func absolute(target string) bool {
	return target == "" || strings.ContainsAny(target[:1], `/\`) || len(target) > 1 && target[1] == ':'
}
