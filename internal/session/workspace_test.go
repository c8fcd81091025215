package session

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/places"
)

func Test_9_2_TheNearestMarkIsTheWorkspace(t *testing.T) {
	dir := tree(t, "repo/.git/", "repo/sub/deep/", "repo/inner/hcp.toml", "repo/inner/x/", "hg/.hg/", "jj/.jj/a/", "plain/x/", "repo/file")
	if err := os.Symlink(dir+"/repo/sub", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	closed := places.Places{Home: dir + "/home", Store: dir + "/home/.hcp"}
	for from, want := range map[string]string{
		"repo": "repo", "repo/sub/deep": "repo", "repo/inner/x": "repo/inner", "hg": "hg", "jj/.jj/a": "jj", "plain/x": "plain/x", "link/deep": "repo",
	} {
		if got := FindWorkspace(filepath.Join(dir, from), "", closed); got.Root != filepath.Join(dir, want) || got.Reason != "" || got.GitDirs != nil {
			t.Errorf("from %s: %+v, want %s", from, got, want)
		}
	}
	for named, want := range map[string]string{"..": "repo/sub", dir + "/plain": "plain", "../../inner": "repo/inner"} {
		if got := FindWorkspace(dir+"/repo/sub/deep", named, closed); got.Root != filepath.Join(dir, want) {
			t.Errorf("named %s: %+v, want %s", named, got, want)
		}
	}
	for _, named := range []string{"none", dir + "/repo/file"} {
		if got := FindWorkspace(dir+"/repo/sub/deep", named, closed); got.Root != "" || got.Reason == "" {
			t.Errorf("named %s: %+v", named, got)
		}
	}
}

func Test_9_2_RootAndHomeOnlyWhenNamed(t *testing.T) {
	dir := tree(t, "home/docs/", "config/")
	p := places.Places{Home: dir + "/home", Store: dir + "/store", Config: dir + "/config"}
	if got := FindWorkspace(dir+"/home", "", p); got.Root != "" || !strings.Contains(got.Reason, "--workspace") {
		t.Errorf("home: %+v", got)
	}
	if got := FindWorkspace(dir, dir+"/home", p); got.Root != dir+"/home" {
		t.Errorf("home, named: %+v", got)
	}
	if err := os.WriteFile(dir+"/home/hcp.toml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := FindWorkspace(dir+"/home/docs", "", p); got.Root != "" {
		t.Errorf("a mark in the home directory: %+v", got)
	}
	if got := FindWorkspace("/", "", p); got.Root != "" || got.Reason == "" {
		t.Errorf("/: %+v", got)
	}
	if got := FindWorkspace("/", "/", p); got.Root != "" {
		t.Errorf("/ holds the store: %+v", got)
	}
}

func Test_9_2_NeverTheStoreOrACredentialStore(t *testing.T) {
	dir := tree(t, "home/.ssh/", "home/.config/gh/", "home/.config/git/credentials=x", "home/.netrc", "home/.config/hcpx/", "home/.hcp/data/", "home/src/")
	if err := os.Symlink(dir+"/home/.ssh", dir+"/keys"); err != nil {
		t.Fatal(err)
	}
	p := places.Places{Home: dir + "/home", Config: dir + "/home/.config", Store: dir + "/home/.hcp"}
	for _, named := range []string{"home", "home/.ssh", "home/.config", "home/.config/gh", "home/.config/git", "home/.config/hcpx", "home/.hcp",
		"home/.hcp/data", "keys", ".", "/"} {
		if got := FindWorkspace(dir, named, p); got.Root != "" || !strings.Contains(got.Reason, "cannot be a workspace") {
			t.Errorf("%s: %+v", named, got)
		}
	}
	if got := FindWorkspace(dir, "home/src", p); got.Root != dir+"/home/src" {
		t.Errorf("beside them: %+v", got)
	}
	// Before they exist: the store and the configuration count, since a first run makes them.
	dir = tree(t, "home/", "x/")
	if err := os.Symlink(dir+"/x", dir+"/home/alias"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []places.Places{{Home: dir + "/home", Store: dir + "/store"}, {Home: dir + "/none", Store: dir + "/home/.hcp"},
		{Home: dir + "/none", Config: dir + "/home/c"}, {Store: dir + "/home/alias"}} {
		refused, taken := "home", "x"
		if p.Store == dir+"/home/alias" { // which leads to x
			refused, taken = taken, refused
		}
		if got := FindWorkspace(dir, refused, p); got.Root != "" {
			t.Errorf("%s with %+v: %+v", refused, p, got)
		}
		if got := FindWorkspace(dir, taken, p); got.Root == "" {
			t.Errorf("%s with %+v: %+v", taken, p, got)
		}
	}
}

func Test_9_2_AGitDirectoryElsewhereMustPointBack(t *testing.T) {
	const head = "/HEAD=ref: refs/heads/main\n"
	cases := []struct {
		name  string
		files []string
		want  []string
	}{
		{"linked worktree", []string{"main/.git" + head, "main/.git/worktrees/w" + head, "main/.git/worktrees/w/gitdir=$/w/.git\n",
			"main/.git/worktrees/w/commondir=../..\n", "w/.git=gitdir: $/main/.git/worktrees/w\n"}, []string{"main/.git/worktrees/w", "main/.git"}},
		{"linked worktree, relative paths", []string{"main/.git" + head, "main/.git/worktrees/w" + head, "main/.git/worktrees/w/gitdir=../../../../w/.git\n",
			"main/.git/worktrees/w/commondir=../..\n", "w/.git=gitdir: ../main/.git/worktrees/w\n"}, []string{"main/.git/worktrees/w", "main/.git"}},
		{"it points to another worktree", []string{"main/.git" + head, "main/.git/worktrees/w" + head, "main/.git/worktrees/w/gitdir=$/other/.git\n",
			"other/.git=", "main/.git/worktrees/w/commondir=../..\n", "w/.git=gitdir: $/main/.git/worktrees/w\n"}, nil},
		{"it does not point back", []string{"main/.git" + head, "w/.git=gitdir: $/main/.git\n"}, nil},
		{"a common directory that does not hold it", []string{"victim" + head, "evil/g" + head, "evil/g/gitdir=$/w/.git\n", "evil/g/commondir=$/victim\n",
			"w/.git=gitdir: $/evil/g\n"}, nil},
		{"made up inside the workspace", []string{"victim" + head, "w/g/worktrees/w" + head, "w/g/worktrees/w/gitdir=$/w/.git\n",
			"w/g/worktrees/w/commondir=$/victim\n", "w/.git=gitdir: g/worktrees/w\n"}, nil},
		{"submodule", []string{"main/.git/modules/w" + head, "main/.git/modules/w/config=[core]\n\tbare = false\n\tworktree = ../../../../w\n",
			"w/.git=gitdir: ../main/.git/modules/w\n"}, []string{"main/.git/modules/w"}},
		{"submodule of another place", []string{"main/.git/modules/w" + head, "main/.git/modules/w/config=[other]\n\tworktree = ../../../../w\n",
			"w/.git=gitdir: ../main/.git/modules/w\n"}, nil},
		{"no such directory", []string{"w/.git=gitdir: ../nowhere\n"}, nil},
		{"no gitdir line", []string{"w/.git=hello\n"}, nil},
		{"a credential store", []string{"home/.ssh" + head, "home/.ssh/config=[core]\n\tworktree = $/w\n", "w/.git=gitdir: $/home/.ssh\n"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, append(c.files, "w/sub/")...)
			got := FindWorkspace(dir+"/w/sub", "", places.Places{Home: dir + "/home", Store: dir + "/home/.hcp"})
			want := Workspace{Root: dir + "/w"}
			for _, g := range c.want {
				want.GitDirs = append(want.GitDirs, filepath.Join(dir, g))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func Test_9_2_WhatGitItselfMakes(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := tree(t, "home/", "lib/")
	run := func(in string, args ...string) {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir = filepath.Join(dir, in)
		cmd.Env = append(os.Environ(), "HOME="+dir+"/home", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for _, repo := range []string{"lib", "main"} {
		run(".", "init", "-q", repo)
		run(repo, "commit", "-q", "--allow-empty", "-m", "one")
	}
	run("main", "worktree", "add", "-q", "../linked")
	run("main", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", dir+"/lib", "sub")
	for root, want := range map[string][]string{
		"main": nil, "linked": {dir + "/main/.git/worktrees/linked", dir + "/main/.git"}, "main/sub": {dir + "/main/.git/modules/sub"},
	} {
		got := FindWorkspace(filepath.Join(dir, root), "", places.Places{Home: dir + "/home", Store: dir + "/home/.hcp"})
		if diff := cmp.Diff(Workspace{Root: filepath.Join(dir, root), GitDirs: want}, got); diff != "" {
			t.Errorf("%s: %s", root, diff)
		}
	}
}

func FuzzWorktree(f *testing.F) {
	f.Add("[core]\n\tworktree = ../x\n[Core]\nWORKTREE=\"y\"\n")
	f.Fuzz(func(t *testing.T, config string) {
		if got := worktree(config); !strings.Contains(config, got) || strings.ContainsAny(got, "\n") {
			t.Errorf("%q gives %q", config, got)
		}
	})
}
