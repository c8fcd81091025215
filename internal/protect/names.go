package protect

import (
	"path"
	"strings"
)

// Group is a part of the closed list with what its names have in common (§10.2).
type Group struct {
	Why   string
	Names []string
	Dirs  []string // those of them that are directories by nature; the others are files
}

// nature is what a name is meant to be. Whoever reads a file there fails at a directory, so none may appear.
type nature string

const (
	fileName nature = "file"
	dirName  nature = "directory"
	hooksDir nature = "hooks" // each name in it is a file that git runs
	gitEntry nature = ""      // .git: either

	indexFile nature = "index"     // compared only when it makes git look into what the run left
	farIndex  nature = "far index" // that of a worktree elsewhere: not remembered
)

// natureOf is the nature of a name of gitNames or linkedNames.
func natureOf(name string) nature {
	if name == "hooks" {
		return hooksDir
	}
	return fileName
}

// gitNames are guarded in every git directory that the workspace has: what git runs, or where it finds that.
var gitNames = [...]string{"config", "config.worktree", "hooks", "commondir", "gitdir"}

// linkedNames are guarded in each directory below worktrees/ of a git directory.
var linkedNames = [...]string{"config.worktree", "commondir", "gitdir"}

// List is the closed list of the workspace's root, and the git directory's part as it looks from there. A
// name that is a directory is guarded with all that lies in it.
func List() []Group {
	git := Group{Why: "git: its configuration, hooks, and pointers to them, in every git directory of the workspace", Names: []string{".git", "HEAD"}}
	for _, name := range gitNames {
		git.Names = append(git.Names, ".git/"+name)
	}
	for _, name := range linkedNames {
		git.Names = append(git.Names, ".git/worktrees/*/"+name)
	}
	for _, name := range gitNames {
		git.Names = append(git.Names, ".git/modules/**/"+name)
	}
	git.Dirs = []string{".git", ".git/hooks", ".git/modules/**/hooks"}
	return append([]Group{git}, rootGroups()...)
}

// rootGroups are the names in the root that hold for every workspace.
func rootGroups() []Group {
	return []Group{
		group("other version control", `.hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .jj/repo/config.toml .githooks/ .husky/
			.pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml`),
		group("shells and debuggers, when the directory is entered or is a home", `.envrc mise.toml .mise.toml mise.local.toml
			.mise.local.toml .mise/config.toml .config/mise.toml devbox.json .bashrc .bash_profile .bash_login .bash_logout .profile
			.zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .gitconfig .gdbinit .lldbinit`),
		group("editors, when the directory is opened", `.vscode/tasks.json .vscode/settings.json .vscode/launch.json .vscode/mcp.json
			.idea/runConfigurations/ .idea/startup.xml .idea/watcherTasks.xml .run/ .zed/settings.json .zed/tasks.json .zed/debug.json
			.devcontainer/ .devcontainer.json .exrc .vimrc .nvimrc .nvim.lua .dir-locals.el .dir-locals-2.el`),
		group("agents: settings, servers, hooks, commands and skills", `.mcp.json .claude/settings.json .claude/settings.local.json
			.claude/commands/ .claude/agents/ .claude/hooks/ .claude/skills/ .claude/rules/ .agents/mcp_config.json .agents/plugins/
			.agents/skills/ .cursor/mcp.json .cursor/hooks.json .cursor/environment.json .cursor/commands/ .cursor/rules/ .cursor/skills/
			.codex/config.toml .codex/hooks.json .codex/prompts/ .codex/rules/ .codex/skills/ .gemini/settings.json .gemini/commands/
			.gemini/extensions/ .gemini/skills/ .github/mcp.json .github/skills/ .github/agents/ .github/hooks/ .github/prompts/
			.github/instructions/ opencode.json opencode.jsonc .opencode/command/ .opencode/commands/ .opencode/agent/ .opencode/agents/
			.opencode/plugin/ .opencode/plugins/ .opencode/tool/ .opencode/tools/ .opencode/skills/ .devin/mcp_config.json .devin/rules/
			.devin/skills/ .windsurf/rules/ .windsurf/workflows/ .kiro/settings/ .kiro/hooks/ .kiro/steering/ .kiro/skills/
			.amp/settings.json .amp/settings.jsonc .amp/tools/ .junie/mcp/ .junie/skills/ .warp/.mcp.json .warp/skills/
			.qwen/settings.json .qwen/commands/ .qwen/rules/ .qwen/skills/ .crushrc crushrc .crush.json crush.json .crush/skills/
			.continue/config.yaml .continue/mcpServers/ .continue/rules/ .continue/skills/ .roo/mcp.json .roo/commands/ .roo/rules/
			.roo/skills/ .roomodes .cline/skills/ .goose/skills/`),
		group("agents: instructions", `CLAUDE.md CLAUDE.local.md .claude/CLAUDE.md AGENTS.md AGENTS.override.md AGENT.md GEMINI.md
			QWEN.md WARP.md CRUSH.md .junie/AGENTS.md .junie/guidelines.md .rules .cursorrules .windsurfrules .clinerules/ .goosehints .github/copilot-instructions.md`),
		group("tools that run what the directory says", `Makefile makefile GNUmakefile justfile Justfile .justfile Taskfile.yml
			Taskfile.yaml taskfile.yml taskfile.yaml package.json .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs bunfig.toml
			.bazelrc .cargo/config.toml .cargo/config .mvn/`),
	}
}

// group reads a part of the list; a name that ends in a slash is a directory.
func group(why, list string) Group {
	g := Group{Why: why}
	for name := range strings.FieldsSeq(list) {
		name, dir := strings.CutSuffix(name, "/")
		if g.Names = append(g.Names, name); dir {
			g.Dirs = append(g.Dirs, name)
		}
	}
	return g
}

// Covers says whether a glob of a policy's "protected" means a path (§10.2): segment by segment, * within one and nothing else special, and
// with all that lies below. The git directory is meant only by a glob that begins with .git: no * stands for it.
func Covers(glob, name string) bool {
	globs, names := strings.Split(glob, "/"), strings.Split(name, "/")
	if strings.ContainsAny(glob, special) || len(globs) > len(names) || names[0] == ".git" && globs[0] != ".git" {
		return false
	}
	for i, g := range globs {
		if ok, err := path.Match(g, names[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// special are characters that other kinds of globs have; here they mean nothing, and no name of the list has one.
const special = `?[]{}\`

// covered says whether one of the globs means the path.
func covered(globs []string, name string) bool {
	for _, g := range globs {
		if Covers(g, name) {
			return true
		}
	}
	return false
}

// Known says whether a glob of a policy means anything of the list: a name, what lies below one, or several.
func Known(glob string) bool {
	if glob == "" || strings.ContainsAny(glob, special) {
		return false
	}
	for _, g := range List() {
		for _, name := range g.Names {
			if Covers(glob, name) || name != ".git" && below(name, glob) {
				return true
			}
		}
	}
	return false
}

// below says whether a glob means something inside a listed name. ** in a name stands for one segment or more.
func below(name, glob string) bool {
	names, globs := strings.Split(name, "/"), strings.Split(glob, "/")
	for i := 0; i < len(names); i++ {
		if names[i] == "**" {
			for skip := 1; skip <= len(globs)-i; skip++ {
				if below(strings.Join(names[i+1:], "/"), strings.Join(globs[i+skip:], "/")) {
					return true
				}
			}
			return false
		}
		if i >= len(globs) {
			return false
		}
		if ok, err := path.Match(globs[i], names[i]); names[i] != "*" && (err != nil || !ok) {
			return false
		}
	}
	return true
}
