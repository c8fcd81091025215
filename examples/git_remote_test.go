package examples_test

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	gitUser  = "ada"
	gitToken = "canary-token-7c1f0d5e"
)

// forge is a git server over https that wants a token, and what it saw.
type forge struct {
	*httptest.Server
	t      *testing.T
	root   string
	mu     sync.Mutex
	pushes int      // requests that may change something
	heard  []string // headers of authorization
	words  []string // command lines of this machine that hold the token, while a request was served
}

// newForge serves one bare repository, repo.git.
func newForge(t *testing.T) *forge {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skip("git is not on this machine")
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git-http-backend is not on this machine")
	}
	f := &forge{t: t, root: t.TempDir()}
	repo := filepath.Join(f.root, "repo.git")
	for _, args := range [][]string{{"init", "-q", "--bare", "-b", "main", repo}, {"-C", repo, "config", "http.receivepack", "true"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
	}
	git := &cgi.Handler{Path: backend, Root: "/git", Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + f.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + f.root}}
	f.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, git) }))
	t.Cleanup(f.Close)
	return f
}

func (f *forge) serve(w http.ResponseWriter, r *http.Request, git http.Handler) {
	user, password, ok := r.BasicAuth()
	f.mu.Lock()
	if a := r.Header.Get("Authorization"); a != "" {
		f.heard = append(f.heard, a)
		f.words = append(f.words, wordsWith(gitToken)...)
	}
	good := ok && user == gitUser && password == gitToken
	if good && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		f.pushes++
	}
	f.mu.Unlock()
	if !good {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	git.ServeHTTP(w, r)
}

// wordsWith are the command lines of this machine that hold a text; none where there is no /proc.
func wordsWith(text string) []string {
	var found []string
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well formed
	for _, name := range names {
		if line, err := os.ReadFile(name); err == nil && bytes.Contains(line, []byte(text)) {
			found = append(found, string(line))
		}
	}
	return found
}

// branch is where a branch of the served repository is; empty when there is none.
func (f *forge) branch(name string) string {
	out, err := exec.Command("git", "-C", filepath.Join(f.root, "repo.git"), "rev-parse", "--quiet", "--verify", "refs/heads/"+name).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// ca writes the certificate where the pack looks for it below a home.
func (f *forge) ca(home string) {
	f.t.Helper()
	dir := filepath.Join(home, ".config", "git")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), text, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// newRemote is the pack in a repository whose origin is the server's, with one commit on main and one on agent/fix.
func newRemote(t *testing.T, f *forge) *tool {
	t.Helper()
	x := newTool(t, "git-remote", "hcp-git-remote", "git", "awk", "od", "ln", "mkdir", "sha256sum")
	x.dir = filepath.Join(x.dir, "repo")
	x.git("init", "-q", "-b", "main", x.dir)
	x.git("config", "user.name", "Ada")
	x.git("config", "user.email", "ada@example.org")
	x.git("remote", "add", "origin", f.URL+"/git/repo.git")
	x.git("commit", "-q", "--allow-empty", "-m", "Begin")
	x.git("checkout", "-q", "-b", "agent/fix")
	x.git("commit", "-q", "--allow-empty", "-m", `Fix the "timetable"`)
	for _, e := range x.env {
		if home, ok := strings.CutPrefix(e, "HOME="); ok {
			f.ca(home)
		}
	}
	x.env = append(x.env, "HCP_GIT_USERNAME="+gitUser, "HCP_GIT_PASSWORD="+gitToken)
	return x
}

// noToken fails when a file of the test, or a command line that was seen, holds the token.
func (f *forge) noToken(outputs ...string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.words) > 0 {
		f.t.Errorf("command lines held the token: %q", f.words)
	}
	for _, out := range outputs {
		if strings.Contains(out, gitToken) {
			f.t.Errorf("the output holds the token: %s", out)
		}
	}
	err := filepath.WalkDir(filepath.Dir(f.root), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if bytes.Contains(data, []byte(gitToken)) {
			f.t.Errorf("%s holds the token", name)
		}
		return err
	})
	if err != nil {
		f.t.Error(err)
	}
}

func TestGitRemotePushesOnceWhatItShowed(t *testing.T) {
	f := newForge(t)
	x := newRemote(t, f)
	pushed := x.json("push", "--branch=main")
	if f.branch("main") != at(pushed, "commit") || at(pushed, "was") != "<nil>" || at(pushed, "count") != "1" {
		t.Errorf("main: %s", dump(t, pushed))
	}
	out := x.json("outgoing", "--branch=agent/fix")
	if at(out, "count") != "1" || at(out, "commits", 0, "subject") != `Fix the "timetable"` || at(out, "url") != f.URL+"/git/repo.git" {
		t.Errorf("outgoing: %s", dump(t, out))
	}
	if f.branch("agent/fix") != "" || f.pushes != 1 {
		t.Errorf("outgoing changed the remote: %d pushes", f.pushes)
	}
	first := x.json("push", "--branch=agent/fix")
	again := x.json("push", "--branch=agent/fix")
	if f.pushes != 2 || f.branch("agent/fix") != at(out, "commit") || at(first, "commit") != at(out, "commit") || at(again, "count") != "0" {
		t.Errorf("%d pushes; %s, then %s", f.pushes, dump(t, first), dump(t, again))
	}
	fetched := x.json("fetch")
	if at(fetched, "branches", 0, "name") != "agent/fix" || x.git("rev-parse", "origin/agent/fix") != f.branch("agent/fix") {
		t.Errorf("fetch: %s", dump(t, fetched))
	}
	f.noToken(dump(t, pushed), dump(t, out), dump(t, first), dump(t, fetched))
	if len(f.heard) == 0 {
		t.Error("the server never heard the token: the test shows nothing")
	}
}

func TestGitRemoteNeverForces(t *testing.T) {
	f := newForge(t)
	x := newRemote(t, f)
	x.json("push", "--branch=agent/fix")
	was := f.branch("agent/fix")
	x.git("commit", "-q", "--amend", "--allow-empty", "-m", "Another history")
	x.fails("has commits at origin that are not here", "push", "--branch=agent/fix")
	x.fails("can't be called", "push", "--branch=+agent/fix")
	x.fails("can't be called", "push", "--branch=:agent/fix")
	x.fails("can't be called", "push", "--branch=--force")
	if f.branch("agent/fix") != was || f.pushes != 1 {
		t.Errorf("the remote moved, or was asked to: %d pushes", f.pushes)
	}
}

func TestGitRemoteSaysThatTheTokenIsWrong(t *testing.T) {
	f := newForge(t)
	x := newRemote(t, f)
	x.env = append(x.env, "HCP_GIT_PASSWORD=wrong-"+gitToken)
	for _, command := range [][]string{{"push", "--branch=main"}, {"outgoing", "--branch=main"}, {"fetch"}} {
		x.fails("does not take this credential", command...)
	}
	if f.pushes != 0 {
		t.Errorf("%d pushes", f.pushes)
	}
	f.noToken()
}

// TestGitRemoteGivesTheTokenToOneHost: neither a redirect nor an address in the repository's configuration takes it elsewhere.
func TestGitRemoteGivesTheTokenToOneHost(t *testing.T) {
	evil := newForge(t)
	f := newForge(t)
	x := newRemote(t, f)
	away := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, evil.URL+r.URL.RequestURI(), http.StatusFound)
	}))
	defer away.Close()
	x.git("remote", "add", "away", away.URL+"/git/repo.git")
	for _, command := range [][]string{{"push", "--branch=main"}, {"outgoing", "--branch=main"}, {"fetch"}} {
		x.fails("a redirect, which is not followed", append(command, "--remote=away")...)
	}
	x.git("config", "url."+evil.URL+"/.insteadOf", f.URL+"/")
	x.git("config", "url."+evil.URL+"/.pushInsteadOf", f.URL+"/")
	x.git("config", "remote.origin.pushurl", evil.URL+"/git/repo.git")
	x.git("config", "http.proxy", evil.URL)
	x.git("config", "http.extraHeader", "X-Evil: yes")
	x.json("push", "--branch=main")
	if len(evil.heard) != 0 || evil.pushes != 0 || f.pushes != 1 {
		t.Errorf("the other host heard %d headers, %d pushes; the remote %d", len(evil.heard), evil.pushes, f.pushes)
	}
	f.noToken()
}

func TestGitRemoteStartsNothingThatTheRepositoryNames(t *testing.T) {
	f := newForge(t)
	x := newRemote(t, f)
	mark := filepath.Join(t.TempDir(), "ran")
	trap := "touch '" + mark + "'; false"
	for key, value := range map[string]string{"credential.helper": "!" + trap, "core.sshCommand": trap, "core.askPass": trap, "remote.origin.uploadpack": trap,
		"remote.origin.receivepack": trap, "remote.origin.vcs": "ext", "core.fsmonitor": trap, "core.gitProxy": trap, "push.gpgSign": "true", "gpg.program": trap} {
		x.git("config", key, value)
	}
	for _, hook := range []string{"pre-push", "reference-transaction"} {
		if err := os.WriteFile(filepath.Join(x.dir, ".git", "hooks", hook), []byte("#!/bin/sh\n"+trap+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pushed := x.json("push", "--branch=main")
	if err := os.Remove(filepath.Join(x.dir, ".git", "refs", "remotes", "origin", "main")); err != nil { // so that fetch has something to do
		t.Fatal(err)
	}
	x.json("fetch")
	if !strings.Contains(at(pushed, "notes"), "pre-push was not run") {
		t.Errorf("the hook is not told: %s", dump(t, pushed))
	}
	for _, url := range []string{"ext::sh -c " + trap, "git@127.0.0.1:repo.git", "http://127.0.0.1/repo.git", f.root, "https://u:p@127.0.0.1/r.git", "https:///r.git"} {
		x.git("remote", "set-url", "origin", url)
		if out, _, code := x.run("fetch"); code == 0 {
			t.Errorf("%s was fetched: %s", url, out)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program that the repository names was started")
	}
}

// TestGitRemoteOpensARepositoryAsGitDoes: what the two packs share is the same text.
func TestGitRemoteOpensARepositoryAsGitDoes(t *testing.T) {
	for _, name := range []string{"view.sh", "config.awk", "json.awk"} {
		a, err := os.ReadFile(filepath.Join("packs", "git", "bin", name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join("packs", "git-remote", "bin", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs between git and git-remote", name)
		}
	}
}
