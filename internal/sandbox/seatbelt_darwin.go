package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"hcpx/internal/protocol"
)

// seatbeltProgram confines and then becomes the command. It is never looked up.
const seatbeltProgram = "/usr/bin/sandbox-exec"

// probe asks for the program that confines (§10.5): no version is asked, for the canary tells whether it does.
func probe() Kernel {
	k := Kernel{System: runtime.GOOS + "/" + runtime.GOARCH}
	info, err := os.Lstat(seatbeltProgram)
	k.Seatbelt = err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	return k
}

// confiner is the macOS backend.
type confiner struct{ system *System }

type world struct{}

func (c *confiner) init(s *System) { c.system = s }

func (c *confiner) warm() {}

func (c *confiner) delegated() string { return "" }

func (c *confiner) close() error { return nil }

func (c *confiner) jail(spec *Spec, home string) Jail { return seatbeltJail(spec, home) }

// check answers for a Spec without making anything (§6.3 step 8).
func (c *confiner) check(spec *Spec) (*world, *protocol.Error) {
	if err := c.system.confinable(spec); err != nil {
		return nil, err
	}
	if err := checkNative(spec); err != nil {
		return nil, err
	}
	access, refusal := real(seatbeltJail(spec, "").Declared)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := c.apart(access); refusal != nil {
		return nil, refusal
	}
	return nil, within(spec.Dir, access)
}

// real resolves declared paths, for a profile compares real ones, and tells files from trees.
func real(declared []Access) ([]Access, *protocol.Error) {
	found := make([]Access, 0, len(declared))
	for _, a := range declared {
		at, err := filepath.EvalSymlinks(a.Path)
		if err != nil || !filepath.IsAbs(a.Path) {
			return nil, outOfJail(a.Path, "it cannot be reached")
		}
		info, err := os.Stat(at)
		if err != nil || at == "/" {
			return nil, outOfJail(a.Path, "it cannot be in a jail")
		}
		a.Path, a.Tree = at, info.IsDir()
		found = append(found, a)
	}
	return found, nil
}

func outOfJail(path, why string) *protocol.Error {
	return protocol.Fail(protocol.JailEscape, path+" cannot be in the jail: "+why+".").With("path", path).
		WithHint("ls -ld " + protocol.Word(path))
}

// apart keeps the private directories of other runs out of every tree, and every tree out of them.
func (c *confiner) apart(access []Access) *protocol.Error {
	scratch := c.system.options.Scratch
	if at, err := filepath.EvalSymlinks(scratch); err == nil {
		scratch = at
	}
	for _, a := range access {
		if below(scratch, a.Path) || below(a.Path, scratch) {
			return outOfJail(a.Path, "the private directories of runs lie there")
		}
	}
	return nil
}

// below says whether a path is a directory or lies in it.
func below(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// within holds the working directory inside the trees of the jail.
func within(dir string, access []Access) *protocol.Error {
	if dir == "" {
		return nil
	}
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return outOfJail(dir, "it cannot be reached")
	}
	for _, a := range access {
		if a.Tree && below(at, a.Path) {
			return nil
		}
	}
	return outOfJail(dir, "it lies outside every directory that the command may have")
}

// prepare makes the private directory and the profile.
func (c *confiner) prepare(spec *Spec) (Box, *protocol.Error) {
	if _, refusal := c.check(spec); refusal != nil {
		return nil, refusal
	}
	if err := ownDir(c.system.options.Scratch); err != nil {
		return nil, unavailable("jail", "The jail could not be built: "+err.Error()+".")
	}
	root, lock, err := nativePrivate(c.system.options.Scratch, spec)
	if err != nil {
		return nil, unavailable("jail", "The jail could not be built: "+err.Error()+".")
	}
	box := &nativeBox{system: c.system, spec: spec, root: root, lock: lock}
	at, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, unavailable("jail", "The jail could not be built: "+errors.Join(err, box.Close()).Error()+".")
	}
	jail := seatbeltJail(spec, at)
	access, refusal := real(jail.Declared)
	if refusal != nil {
		return nil, gaveUp(refusal, box)
	}
	text, params := seatbeltProfile(append(append(access, jail.Own...), jail.Base...), spec.Network.Mode, 0)
	box.within = []string{seatbeltProgram, "-p", text}
	for _, param := range params {
		box.within = append(box.within, "-D", param)
	}
	box.confined = Report{Backend: "seatbelt", Network: modeOf(spec), Degraded: seatbeltDegraded()}
	return box, nil
}

// gaveUp closes a box on the way out of a refusal, which stays the one that is told.
func gaveUp(refusal *protocol.Error, box Box) *protocol.Error {
	if err := box.Close(); err != nil {
		return refusal.With("left", err.Error())
	}
	return refusal
}

func modeOf(spec *Spec) string {
	if spec.Network.Mode == "" {
		return "none"
	}
	return spec.Network.Mode
}
