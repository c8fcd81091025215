package main

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const pushToken = "canary-push-5e0d7c1f"

// pushWorld is a store with git-remote, a repository, and the https server that is its origin.
type pushWorld struct {
	home
	bare   string
	pushes atomic.Int64
	during atomic.Pointer[func()] // what happens once, while the server is asked what it has
	said   strings.Builder
}

func newPushWorld(t *testing.T) *pushWorld {
	t.Helper()
	exe, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(exe)), "git-http-backend")
	if err != nil || lookIn("git") == "" || lookIn("awk") == "" {
		t.Skip("git or awk is not installed")
	}
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git-http-backend is not installed")
	}
	w := &pushWorld{home: home{t, openDir(t)}}
	served := t.TempDir()
	w.bare = filepath.Join(served, "repo.git")
	git := &cgi.Handler{Path: backend, Root: "/git", Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + served, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + served}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != pushToken {
			rw.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			w.pushes.Add(1)
		}
		if act := w.during.Load(); act != nil && r.URL.RawQuery == "service=git-upload-pack" && w.during.CompareAndSwap(act, nil) {
			(*act)()
		}
		git.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.file("store/config.toml", "[identity]\nagents = \"trust-flags\"\n")
	w.file(".config/git/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	w.git("init", "-q", "--bare", "-b", "main", w.bare)
	w.git("-C", w.bare, "config", "http.receivepack", "true")
	w.git("init", "-q", "-b", "main", "work")
	w.git("-C", "work", "remote", "add", "origin", server.URL+"/git/repo.git")
	w.git("-C", "work", "commit", "-q", "--allow-empty", "-m", "Begin")
	w.git("-C", "work", "checkout", "-q", "-b", "agent/fix")
	w.git("-C", "work", "commit", "-q", "--allow-empty", "-m", "Fix the door")
	w.must("add", "git-remote", "--yes")
	w.must("allow", "--read", "git-remote", "~/.config/git/ca.pem")
	w.must("allow", "--host", "git-remote", strings.TrimPrefix(server.URL, "https://"))
	w.must("connect", "git-remote")
	w.must("grant", "agent:claude-code", "verb.exec.write", "--pack", "git-remote", "--verb", "push", "--arg", "branch=agent/*")
	return w
}

func (w *pushWorld) file(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *pushWorld) git(args ...string) string {
	w.t.Helper()
	c := exec.Command("git", args...)
	c.Dir = w.dir
	c.Env = []string{"HOME=" + w.dir, "PATH=" + systemPath, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=a@example.org"}
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// run is one command line in the repository, on whose input the credential waits for whoever asks.
func (w *pushWorld) run(args ...string) (string, error) {
	c := w.command(args...)
	c.Dir = filepath.Join(w.dir, "work")
	c.Stdin = strings.NewReader("ada:" + pushToken + "\n")
	out, err := c.CombinedOutput()
	w.said.WriteString(string(out))
	return string(out), err
}

func (w *pushWorld) must(args ...string) string {
	w.t.Helper()
	out, err := w.run(args...)
	if err != nil {
		w.t.Fatalf("%q: %v %s", args, err, out)
	}
	return out
}

// push is a push of the agent; ok false gives the reason and the id of the refusal.
func (w *pushWorld) push(args ...string) (ok bool, code, reason, id string) {
	w.t.Helper()
	out, _ := w.run(append([]string{"exec", "git-remote", "push", "--as", "agent:claude-code", "--json"}, args...)...) // the envelope says how it ended
	var env struct {
		OK    bool `json:"ok"`
		Error struct {
			Code    string `json:"code"`
			Details struct {
				Reason     string `json:"reason"`
				ApprovalID string `json:"approval_id"`
			} `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(out), &env); err != nil {
		w.t.Fatalf("%v in %s", err, out)
	}
	return env.OK, env.Error.Code, env.Error.Details.Reason, env.Error.Details.ApprovalID
}

// §8.4, §9.2, §15.2, §15.3: an agent's push to a branch that is not its own is refused, one to its own asks a person,
// who sees the commits; another commit since then makes the approval void; the accept pushes once, and no word of the
// credential is said or kept in the open.
func Test_15_3_AnApprovedPushHappensOnce(t *testing.T) {
	w := newPushWorld(t)
	if ok, code, _, _ := w.push("--confirm", "--", "branch=main"); ok || code != "grant_missing" {
		t.Errorf("a push to main: %v %s", ok, code)
	}
	ok, code, _, id := w.push("--confirm", "--", "branch=agent/fix")
	if ok || code != "confirm_required" || id == "" {
		t.Fatalf("the agent's own word: %v %s", ok, code)
	}
	if out := w.must("approvals", "show", id); !strings.Contains(out, "Fix the door") || !strings.Contains(out, "/git/repo.git") {
		t.Errorf("the commits are not shown: %s", out)
	}
	w.must("approvals", "approve", id, "--yes")
	w.git("-C", "work", "commit", "-q", "--allow-empty", "-m", "Slip this in")
	if ok, _, reason, _ := w.push("--approval", id, "--", "branch=agent/fix"); ok || reason != "preview_changed" {
		t.Errorf("a commit more than was shown: %v %s", ok, reason)
	}
	w.git("-C", "work", "reset", "-q", "--hard", "HEAD~1")
	if n := w.pushes.Load(); n != 0 {
		t.Fatalf("%d pushes before the accept was used", n)
	}
	if ok, code, reason, _ := w.push("--approval", id, "--", "branch=agent/fix"); !ok {
		t.Fatalf("the approved push: %s %s", code, reason)
	}
	if ok, _, reason, _ := w.push("--approval", id, "--", "branch=agent/fix"); ok || reason != "spent" {
		t.Errorf("the second use: %v %s", ok, reason)
	}
	if there, here := w.git("-C", w.bare, "rev-parse", "agent/fix"), w.git("-C", "work", "rev-parse", "agent/fix"); there != here || w.pushes.Load() != 1 {
		t.Errorf("%d pushes, %s instead of %s", w.pushes.Load(), there, here)
	}
	w.must("audit", "verify")
	if strings.Contains(w.said.String(), pushToken) {
		t.Errorf("what was said holds the token")
	}
	if out, err := exec.Command("grep", "-rlF", pushToken, w.dir).Output(); err == nil {
		t.Errorf("files hold the token: %s", out)
	}
}

// §15.3: what moves between the look at the preview and the push is not pushed: the run itself compares.
func Test_15_3_WhatMovesAfterThePreviewIsNotPushed(t *testing.T) {
	w := newPushWorld(t)
	_, _, _, id := w.push("--", "branch=agent/fix")
	w.must("approvals", "approve", id, "--yes")
	tree := w.git("-C", "work", "rev-parse", "agent/fix^{tree}")
	slipped := w.git("-C", "work", "commit-tree", "-p", "agent/fix", "-m", "Slip this in", tree)
	swap := func() { w.file("work/.git/refs/heads/agent/fix", slipped+"\n") }
	w.during.Store(&swap)
	ok, code, _, _ := w.push("--approval", id, "--", "branch=agent/fix")
	if ok || code != "command_failed" || w.pushes.Load() != 0 || w.during.Load() != nil {
		t.Errorf("a commit that nobody saw: %v %s, %d pushes", ok, code, w.pushes.Load())
	}
	if at := w.git("-C", "work", "rev-parse", "agent/fix"); at != slipped {
		t.Errorf("the branch did not move, so the test shows nothing: %s", at)
	}
}
