package session

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"hcpx/internal/places"
)

// gitDirs are the git directories of a workspace that lie outside it (§9.2). One counts only if it points
// back to this worktree from a place that the worktree's files cannot have made up:
//
//   - a linked worktree: its directory lies in <common>/worktrees, and its file gitdir names this .git;
//     the common directory belongs to it;
//   - a submodule, or a .git that is a link: core.worktree in its config names this directory.
func gitDirs(root string) []string {
	dotGit := filepath.Join(root, ".git")
	info, err := os.Lstat(dotGit)
	if err != nil || info.IsDir() {
		return nil
	}
	dir := ""
	if info.Mode().IsRegular() {
		target, ok := strings.CutPrefix(firstLine(dotGit), "gitdir: ")
		if !ok {
			return nil
		}
		dir = real(root, target)
	} else if info.Mode()&os.ModeSymlink != 0 {
		dir = real(root, dotGit)
	}
	if dir == "" || places.Within(dir, root) || !exists(filepath.Join(dir, "HEAD")) {
		return nil
	}
	if common := firstLine(filepath.Join(dir, "commondir")); common != "" {
		common = real(dir, common)
		back := firstLine(filepath.Join(dir, "gitdir"))
		if common == "" || filepath.Dir(dir) != filepath.Join(common, "worktrees") || !exists(filepath.Join(common, "HEAD")) ||
			back == "" || real(dir, back) != dotGit {
			return nil
		}
		if places.Within(common, root) {
			return []string{dir}
		}
		return []string{dir, common}
	}
	if back := worktree(read(filepath.Join(dir, "config"))); back != "" && real(dir, back) == root {
		return []string{dir}
	}
	return nil
}

// real is a path as git writes it, relative to base or absolute, with links resolved; "" when it does not
// exist.
func real(base, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return path
}

// maxGitFile bounds what is read of a git file.
const maxGitFile = 64 << 10

func read(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxGitFile))
	if err != nil {
		return ""
	}
	return string(text)
}

func firstLine(path string) string {
	line, _, _ := strings.Cut(read(path), "\n")
	return strings.TrimSuffix(line, "\r")
}

// worktree is core.worktree of a git config, as git itself writes it for a submodule.
func worktree(config string) string {
	section, value := "", ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(line)
			continue
		}
		key, v, ok := strings.Cut(line, "=")
		if ok && section == "[core]" && strings.EqualFold(strings.TrimSpace(key), "worktree") {
			value = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return value
}
