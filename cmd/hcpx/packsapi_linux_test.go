package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hcpx/internal/protocol"
)

const hubToken = "canary-hub-91d3f20a"

// hub answers as GitHub would, and keeps the lines of what it was asked: method, escaped path with query, and body.
type hub struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{}
	answers := map[string]string{
		"GET /repos/acme/door":                            `{"full_name":"acme/door","default_branch":"main","private":true,"temp_clone_token":"canary-clone"}`,
		"GET /repos/acme/door/issues":                     `[{"number":7,"title":"The door sticks"}]`,
		"GET /repos/acme/door/issues/7":                   `{"number":7,"title":"The door sticks","state":"open"}`,
		"POST /repos/acme/door/issues/7/comments":         `{"id":9007199254740993,"html_url":"https://github.com/acme/door/issues/7#c"}`,
		"PUT /repos/acme/door/pulls/7/merge":              `{"merged":true,"sha":"0"}`,
		"GET /repos/acme/door/contents/src%2Fa%20b%3F.go": `{"type":"file","content":"aGVsbG8K"}`,
		"GET /search/issues":                              `{"total_count":0,"items":[]}`,
		"GET /repos/acme/door/releases":                   `[{"tag_name":"v2.0.0-rc.1","draft":false,"prerelease":true},{"tag_name":"v1.0.0","draft":false,"prerelease":false}]`,
		"POST /repos/acme/door/releases":                  `{"id":1,"tag_name":"v1.1.0","draft":true,"html_url":"https://github.com/acme/door/releases/1"}`,
	}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		h.asked = append(h.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		h.mu.Unlock()
		answer, known := answers[r.Method+" "+r.URL.EscapedPath()]
		if strings.HasPrefix(r.URL.Path, "/repos/acme/door/commits/") {
			answer, known = `{"sha":"`+strings.TrimPrefix(r.URL.Path, "/repos/acme/door/commits/")+`"}`, true
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		switch {
		case r.Header.Get("Authorization") != "Bearer "+hubToken || r.Header.Get("User-Agent") == "":
			w.WriteHeader(http.StatusUnauthorized)
			answer = `{"message":"Bad credentials"}`
		case !known:
			w.WriteHeader(http.StatusNotFound)
			answer = `{"message":"Not Found"}`
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(h.Close)
	return h
}

// last are the requests since the last call.
func (h *hub) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := strings.Join(h.asked, "\n")
	h.asked = nil
	return all
}

// newHubWorld has the github pack, with the hub in GitHub's place, connected.
func newHubWorld(t *testing.T) (*world, *hub) {
	t.Helper()
	h := newHub(t)
	w := newPackWorld(t, "git", nil, "git", "awk")
	files := map[string]string{}
	pack := os.DirFS(filepath.Join(shippedPacks, "github"))
	if err := fs.WalkDir(pack, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(pack, name)
		files[name] = strings.ReplaceAll(string(text), "https://api.github.com", h.URL)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.lay(filepath.Join(w.dir, "github"), files)
	w.must("install", filepath.Join(w.dir, "github"))
	w.must("activate", "github")
	w.connect("github", hubToken)
	return w, h
}

// §14.2, §3.6: the github pack keeps its evals, sends what its document says and nothing unconfirmed, and shows no token.
func Test_14_2_ThePackGithub(t *testing.T) {
	w, h := newHubWorld(t)
	w.evalsOf(shippedPacks, "github")
	if asked := h.last(); asked != "" {
		t.Errorf("refused calls asked: %s", asked)
	}
	for _, c := range []struct{ verb, args, want string }{
		{"repo.get", `{"owner":"acme","repo":"door"}`, "GET /repos/acme/door"},
		{"issue.list", `{"owner":"acme","repo":"door","labels":"bug,door & hinge","per_page":2}`, "GET /repos/acme/door/issues?labels=bug%2Cdoor%20%26%20hinge&per_page=2"},
		{"contents.get", `{"owner":"acme","repo":"door","path":"src/a b?.go","ref":"a/b"}`, "GET /repos/acme/door/contents/src%2Fa%20b%3F.go?ref=a%2Fb"},
		{"search.issues", `{"q":"repo:acme/door is:open"}`, "GET /search/issues?q=repo%3Aacme%2Fdoor%20is%3Aopen"},
		{"issue.comment", `{"owner":"acme","repo":"door","number":7,"body":"Seen \"here\" too."}`, `POST /repos/acme/door/issues/7/comments {"body":"Seen \"here\" too."}`},
		{"pull.merge", `{"owner":"acme","repo":"door","number":7,"sha":"0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c","merge_method":"merge"}`,
			`PUT /repos/acme/door/pulls/7/merge {"sha":"0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c","merge_method":"merge"}`},
	} {
		r, out := w.call("github", c.verb, json.RawMessage(c.args), true)
		if asked := h.last(); !r.OK || asked != c.want {
			t.Errorf("%s: asked %q, want %q; %s", c.verb, asked, c.want, out)
		}
		if strings.Contains(out, "canary") {
			t.Errorf("%s shows a token: %s", c.verb, out)
		}
	}
	if out := w.refuses("upstream_error", "Not Found", "github", "release.get", `{"owner":"acme","repo":"door","tag":"v9"}`); strings.Contains(out, hubToken) {
		t.Errorf("an error shows the token: %s", out)
	}
	h.last()
	for _, args := range []string{`{"owner":"acme","repo":"..","path":"a"}`, `{"owner":"acme","repo":"door","path":"../../../user"}`, `{"owner":"acme/x","repo":"door","path":"a"}`} {
		w.refuses(protocol.InvalidArgs, "", "github", "contents.get", args)
	}
	if asked := h.last(); asked != "" {
		t.Errorf("refused calls asked: %s", asked)
	}
	if out, err := exec.Command("grep", "-rlF", hubToken, w.dir).Output(); err == nil {
		t.Errorf("files hold the token: %s", out)
	}
}

// §14.2, §3.5: the release pack keeps its evals; it plans from the repository and GitHub, creates what it planned, and
// stops before it creates when the tree is dirty or the tag taken.
func Test_14_2_ThePackRelease(t *testing.T) {
	w, h := newHubWorld(t)
	work := filepath.Join(w.dir, "work")
	git := func(args ...string) string {
		t.Helper()
		c := w.command("git", append([]string{"-C", work, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "Begin")
	git("tag", "v1.0.0")
	git("commit", "-q", "--allow-empty", "-m", "Oil the hinge")
	git("commit", "-q", "--allow-empty", "-m", `Say "hello"`)
	w.must("add", "release", "--yes")
	w.evalsOf(shippedPacks, "release")
	h.last()
	head := git("rev-parse", "HEAD")
	notes := quoted("- Say \"hello\"\n- Oil the hinge")
	w.gives("release", "plan", `{"owner":"acme","repo":"door","tag":"v1.1.0"}`, `{"tag":"v1.1.0","commit":"`+head+`","since":"v1.0.0","count":2,"notes":`+notes+`}`)
	h.last()
	w.gives("release", "publish", `{"owner":"acme","repo":"door","tag":"v1.1.0"}`, `{"tag":"v1.1.0","commit":"`+head+`","draft":true,"url":"https://github.com/acme/door/releases/1"}`)
	var sent map[string]any
	_, body, found := strings.Cut(h.last(), "POST /repos/acme/door/releases ")
	if err := json.Unmarshal([]byte(body), &sent); !found || err != nil || sent["target_commitish"] != head || sent["draft"] != true || quoted(sent["body"].(string)) != notes {
		t.Errorf("sent %s: %v", body, err)
	}
	w.refuses(protocol.StepFailed, "a release of that tag", "release", "publish", `{"owner":"acme","repo":"door","tag":"v1.0.0"}`)
	w.lay(work, map[string]string{".keep": "changed"})
	w.refuses(protocol.StepFailed, "has changes", "release", "publish", `{"owner":"acme","repo":"door","tag":"v1.1.0"}`)
	if asked := h.last(); strings.Contains(asked, "POST") {
		t.Errorf("it was created: %s", asked)
	}
}
