package imports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"hcpx/internal/lint"
	"hcpx/internal/protocol"
)

// written are the files that import writes; what holds another one is not replaced.
var written = [...]string{"surface.json", "policy.json", "HARNESS.md", "openapi.json"}

// write puts the pack in its place, whole or not at all: it is made beside it, linted there, and renamed.
func write(made *Made, force bool) *protocol.Error {
	dir := filepath.Clean(made.Report.Dir)
	old, refused := occupied(dir, force)
	if refused != nil {
		return refused
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return cannot(dir, err)
	}
	stage, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".")
	if err != nil {
		return cannot(dir, err)
	}
	defer os.RemoveAll(stage)
	if err := fill(stage, made.Files); err != nil {
		return cannot(dir, err)
	}
	if issues, err := judge(stage, made.Report.ID); err != nil {
		return cannot(dir, err)
	} else if protocol.HasErrors(issues) {
		return protocol.Fail(protocol.LintFailed, "The pack that was made does not lint clean, and was not written.").With("issues", issues).
			WithHint("leave the operations that the issues name out, with --exclude operation:ID")
	}
	if err := move(stage, dir, old); err != nil {
		return cannot(dir, err)
	}
	return nil
}

// occupied says whether something that is replaced stands at the place, and refuses what isn't.
func occupied(dir string, force bool) (old bool, refused *protocol.Error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fail(exists, fmt.Sprintf("%s is there and is no directory that can be read.", dir), "choose another place with --out DIR")
	case len(entries) == 0:
		return true, nil
	case !force:
		return false, fail(exists, fmt.Sprintf("The directory %s is there and not empty.", dir), "choose another place with --out DIR, or replace it with --force")
	}
	for _, e := range entries {
		if !slices.Contains(written[:], e.Name()) || !e.Type().IsRegular() {
			return false, fail(exists, fmt.Sprintf("The directory %s holds %q, which no import wrote.", dir, e.Name()), "choose another place with --out DIR")
		}
	}
	return true, nil
}

func fill(stage string, files []File) error {
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(stage, f.Name), f.Text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// judge lints what is to be written.
func judge(stage, id string) ([]protocol.Issue, error) {
	src, err := lint.Open(stage)
	if err != nil {
		return nil, err
	}
	src.Name = id // it is judged as if it had its own name already
	issues, refusal := lint.Run([]lint.Source{src}, lint.Options{})
	if refusal != nil {
		return nil, refusal
	}
	return issues, nil
}

// move renames the pack to its place. What stood there is set aside first, and comes back when the rename fails.
func move(stage, dir string, old bool) error {
	if !old {
		return os.Rename(stage, dir)
	}
	aside := stage + ".old"
	if err := os.Rename(dir, aside); err != nil {
		return err
	}
	if err := os.Rename(stage, dir); err != nil {
		return errors.Join(err, os.Rename(aside, dir))
	}
	return os.RemoveAll(aside)
}

func cannot(dir string, err error) *protocol.Error {
	because := "it cannot be written"
	switch {
	case errors.Is(err, fs.ErrPermission):
		because = "it may not be written"
	case errors.Is(err, syscall.ENOTDIR):
		because = "what stands above it is no directory"
	}
	return fail(unwritable, fmt.Sprintf("The pack was not written to %s: %s.", dir, because), "choose another place with --out DIR")
}
