package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var kills = flag.Int("kills", 60, "how many runtimes are killed while they mint, connect and disconnect")

// A canary is a secret of the sweep: it has what encoders escape, and its name says whose it is.
func canaryOf(name string) string { return `canary/` + name + `+"7\q&=` + strings.Repeat(name, 3) }

// formsOf are a canary and what encoders make of it, as far as it can stand in a text.
func formsOf(t *testing.T, canary string) []string {
	t.Helper()
	quoted, err := json.Marshal(canary)
	if err != nil {
		t.Fatal(err)
	}
	forms := []string{canary, string(quoted[1 : len(quoted)-1]), url.QueryEscape(canary), url.PathEscape(canary)}
	for shift := range 3 {
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString([]byte("xyz"[:shift] + canary))
			forms = append(forms, text[4:len(text)-2]) // what does not depend on the edges
		}
	}
	return forms
}

// secretPacks are one pack of each source that needs no browser; every one prints its credential in each form that a
// shell knows, and fails, and waits.
func secretPacks(server string) map[string]string {
	return map[string]string{
		"token":    `"mode":"user","hub":"keyring","source":{"kind":"token"}`,
		"basic":    `"mode":"user","hub":"keyring","source":{"kind":"basic","username":"ada"}`,
		"env":      `"mode":"local","hub":"local-credential","source":{"kind":"env","name":"CANARY_ENV"}`,
		"file":     `"mode":"local","hub":"none","source":{"kind":"file","path":"@planted/key.json","pointer":"/key"}`,
		"command":  `"mode":"local","hub":"local-credential","source":{"kind":"command","argv":["giver","auth","token"]}`,
		"client":   `"mode":"mothership","hub":"keyring","source":{"kind":"client_credentials","token_url":"` + server + `/token","client_id":"c"}`,
		"exchange": `"mode":"mothership","hub":"keyring","source":{"kind":"token_exchange","token_url":"` + server + `/token"}`,
		"given":    `"mode":"user","hub":"keyring","source":{"kind":"token"}`, // as a file
	}
}

const leak = `#!/bin/sh
[ -z "$SECRET_FILE" ] || SECRET=$(cat "$SECRET_FILE")
printf '%s\n' "$SECRET"
printf '{"a":"%s"}' "$SECRET" >&2
for pad in '' x xy; do printf '%s' "$pad$SECRET" | base64; printf '%s' "$pad$SECRET" | base64 -w0; done
printf '%s' "$SECRET" | base64 | tr '+/' '-_' >&2
case $1 in
fail) exit 3 ;;
wait) echo ready >"$2/ready"; sleep 60 ;;
esac
`

// sweeper is a store with those packs, and everything that was ever said.
type sweeper struct {
	home
	said  bytes.Buffer
	forms []string
	env   []string
}

func newSweeper(t *testing.T) *sweeper {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "client"
		if r.FormValue("subject_token") != "" {
			name = "exchange"
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(map[string]any{"access_token": canaryOf(name), "token_type": "Bearer", "expires_in": 40}); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	s := &sweeper{home: home{t, t.TempDir()}, env: []string{"CANARY_ENV=" + canaryOf("env")}}
	s.file("store/config.toml", "[identity]\nagents = \"trust-flags\"\n", 0o600)
	key, err := json.Marshal(map[string]string{"key": canaryOf("file")})
	if err != nil {
		t.Fatal(err)
	}
	s.file("planted/key.json", string(key), 0o600)
	s.file("planted/giver", "#!/bin/sh\ncat <<'E'\n"+canaryOf("command")+"\nE\n", 0o700)
	for _, name := range []string{"token", "basic", "env", "file", "command", "client", "exchange", "typed", "given"} {
		s.forms = append(s.forms, formsOf(t, canaryOf(name))...)
	}
	s.pack("filed", secretPacks(server.URL)["client"]) // the same, given as a file
	for name, text := range secretPacks(server.URL) {
		s.pack(name, strings.ReplaceAll(text, "@planted", filepath.Join(s.dir, "planted")))
	}
	return s
}

func (s *sweeper) file(name, text string, mode os.FileMode) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sweeper) pack(name, binding string) {
	inject := `"env":{"SECRET":"{token}"}`
	switch name {
	case "basic":
		inject = `"env":{"SECRET":"{password}"}`
	case "given", "filed":
		inject = `"file":{"SECRET_FILE":"{token}\n"}`
	}
	s.file(name+"/surface.json", `{"hcp":{"version":"1.1"},"id":"`+name+`","version":"1.0.0","summary":"Leak it.","adapter":"wrap",
		"wrap":{"bin":"./leak.sh","uses":["sh","base64","tr","sleep","cat"]},"binding":{`+binding+`,"inject":{`+inject+`}},
		"verbs":{"leak":{"summary":"Leak it.","args":{"type":"object","properties":{"how":{"type":"string"},"where":{"type":"string"}},"additionalProperties":false},
		"argv":["--","{how}","{where}"],"output":"text","examples":[{"args":{"how":"ok"}}]}}}`, 0o600)
	s.file(name+"/policy.json", `{"surface_id":"`+name+`","verbs":{"leak":{"operation":"write","privacy":{"land":"local"}}}}`, 0o600)
	s.file(name+"/HARNESS.md", "# Leak\n\nLeaks it.\n\n`hcpx exec "+name+" leak`\n", 0o600)
	s.file(name+"/leak.sh", strings.Replace(leak, "case $1", "shift\ncase $1", 1), 0o700)
}

// run is one command line; everything that it says is kept for the sweep.
func (s *sweeper) run(stdin string, args ...string) (string, error) {
	c := s.command(args...)
	c.Dir = filepath.Join(s.dir, "work")
	c.Env = append(append(c.Env, s.env...), "PATH="+filepath.Join(s.dir, "planted")+":"+systemPath)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.CombinedOutput()
	fmt.Fprintf(&s.said, "%v\n%s\n", args, out)
	return string(out), err
}

func (s *sweeper) must(stdin string, args ...string) string {
	s.t.Helper()
	out, err := s.run(stdin, args...)
	if err != nil {
		s.t.Fatalf("%v: %v %s", args, err, out)
	}
	return out
}

// found names the forms that stand in a text.
func (s *sweeper) found(text []byte) []string {
	var found []string
	for _, form := range s.forms {
		if bytes.Contains(text, []byte(form)) {
			found = append(found, form)
		}
	}
	return found
}

// §8.4: a credential is in the child's own environment and nowhere else: not in what any command says, in the plan, the
// audit, the store or anything else that the runtime wrote, nor in the words of any process.
func Test_8_4_NoCredentialLeavesItsChild(t *testing.T) {
	s := newSweeper(t)
	if err := os.Mkdir(filepath.Join(s.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.must("", "allow", "giver")
	s.must("", "grant", "agent:claude-code", "verb.exec.write")
	typed := map[string]string{"token": canaryOf("token"), "given": canaryOf("given"), "basic": canaryOf("basic"), "client": canaryOf("typed"), "exchange": canaryOf("typed")}
	for _, name := range first(2, slices.Sorted(maps.Keys(secretPacks("")))) {
		s.must("", "install", filepath.Join(s.dir, name), "--allow-bin")
		s.must("", "activate", name)
		s.run("", "exec", name, "leak", "--", "how=ok") // not connected
		s.must(typed[name]+"\n", "connect", name)
		s.must("", "connect", name) // again: what is kept stays
		out := s.must("", "exec", name, "leak", "--json", "--", "how=ok")
		if strings.Count(out, "[redacted]") < 7 {
			t.Errorf("%s: the canary was not there to be masked: %s", name, out)
		}
		s.must("", "exec", name, "leak", "--", "how=ok")
		if out, err := s.run("", "exec", name, "leak", "--json", "--", "how=fail"); err == nil || !strings.Contains(out, "command_failed") {
			t.Errorf("%s: %s", name, out)
		}
		s.run("", "exec", name, "leak", "--", "how=fail")
		s.must("", "exec", name, "leak", "--plan", "--json", "--", "how=ok")
		s.alive(name)
		s.run("", "connect", name, "--as", "agent:claude-code")
		s.must("", "exec", name, "leak", "--as", "agent:claude-code", "--", "how=ok")
		if !s.lent(name) {
			t.Errorf("%s: the audit does not name both who acted and whose binding it was", name)
		}
	}
	for _, words := range []string{"list", "status", "doctor", "availability", "whoami", "config show", "grants", "grants --explain human:ada token leak",
		"audit tail", "audit head", "audit verify", "audit export", "audit export --format cef", "setup status", "skill token", "repair"} {
		s.run("", strings.Fields(words)...)
		s.run("", append(strings.Fields(words), "--json")...)
	}
	if left := s.found(s.said.Bytes()); len(left) > 0 {
		t.Errorf("what was said holds %q", left)
	}
	s.sweep()
	for _, name := range first(2, slices.Sorted(maps.Keys(secretPacks("")))) {
		s.must("", "disconnect", name, "--json")
		if out, err := s.run("", "exec", name, "leak", "--json", "--", "how=ok"); err == nil || !strings.Contains(out, "not_connected") {
			t.Errorf("%s runs without a connection: %s", name, out)
		}
		s.must("", "uninstall", name, "--purge", "--force")
	}
	if out := s.must("", "doctor", "--json"); strings.Contains(out, "no connection uses it") {
		t.Errorf("a secret is left: %s", out)
	}
	s.sweep()
}

// §8.4, §8.5: a runtime that is killed at any moment of a mint, a connect or a disconnect leaves no secret in the open, no
// lock, and nothing that repair cannot take away.
func Test_8_4_KilledWhileMintingNothingIsLeft(t *testing.T) {
	s := newSweeper(t)
	if err := os.Mkdir(filepath.Join(s.dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"client", "filed"} {
		s.must("", "install", filepath.Join(s.dir, name), "--allow-bin")
		s.must("", "activate", name)
	}
	s.must(canaryOf("typed")+"\n", "connect", "filed")
	for i := range *kills {
		words := [][]string{{"exec", "client", "leak", "--", "how=ok"}, {"connect", "client"}, {"exec", "filed", "leak", "--", "how=ok"}, {"disconnect", "client"}, {"connect", "client"}}[i%5]
		c := s.command(words...)
		c.Dir = filepath.Join(s.dir, "work")
		c.Stdin = strings.NewReader(canaryOf("typed") + "\n")
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// The moment is spread over the whole of a run, whatever this machine needs for one.
		kill := time.AfterFunc(time.Duration(1+i*7%60)*time.Millisecond, func() { _ = c.Process.Kill() }) // it may have ended
		_ = c.Wait()                                                                                      // killed or not, both are looked at below
		kill.Stop()
		s.said.Write(out.Bytes())
	}
	s.must("", "repair", "--json")
	s.must(canaryOf("typed")+"\n", "connect", "client")
	s.killedWhileItHasAFile()
	if out := s.must("", "exec", "client", "leak", "--json", "--", "how=ok"); !strings.Contains(out, "[redacted]") {
		t.Errorf("it does not mint after all kills: %s", out)
	}
	s.must("", "disconnect", "client")
	if out := s.must("", "doctor", "--json"); strings.Contains(out, "no connection uses it") {
		t.Errorf("a secret is left: %s", out)
	}
	s.must("", "audit", "verify")
	if left := s.found(s.said.Bytes()); len(left) > 0 {
		t.Errorf("what was said holds %q", left)
	}
	s.sweep()
}

// killedWhileItHasAFile kills the runtime while its child has the credential as a file; the next run of anything sweeps it.
func (s *sweeper) killedWhileItHasAFile() {
	s.t.Helper()
	work := filepath.Join(s.dir, "work")
	c := s.command("exec", "filed", "leak", "--", "how=wait", "where="+work)
	c.Dir = work
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	ready := filepath.Join(work, "ready")
	await(s.t, func() bool { _, err := os.Stat(ready); return err == nil }, func() string { return "nothing runs" })
	files, err := filepath.Glob(filepath.Join(s.dir, "store", "run", "*", "given", "SECRET_FILE"))
	if err != nil || len(files) == 0 {
		s.t.Errorf("the child has no file: %v", err)
	}
	if err := errors.Join(c.Process.Kill(), os.Remove(ready)); err != nil {
		s.t.Error(err)
	}
	_ = c.Wait() // killed
}

// lent says whether the audit has a run of the agent with the owner's binding (§8.5).
func (s *sweeper) lent(name string) bool {
	for line := range strings.Lines(s.must("", "audit", "export")) {
		if strings.Contains(line, `"kind":"intent"`) && strings.Contains(line, `"pack_id":"`+name+`"`) &&
			strings.Contains(line, `"principal":"agent:claude-code"`) && strings.Contains(line, `"binding":{"owner":"human:ada"`) {
			return true
		}
	}
	return false
}

// sweep looks through every file but the planted ones.
func (s *sweeper) sweep() {
	s.t.Helper()
	files := 0
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == filepath.Join(s.dir, "planted") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if left := s.found(text); len(left) > 0 {
			s.t.Errorf("%s holds %q", path, left)
		}
		files++
		return err
	})
	if err != nil || files < 20 {
		s.t.Errorf("%d files were swept: %v", files, err)
	}
}

// alive looks at a run that is on: its canary is in the environment of the child, and in no process's words.
func (s *sweeper) alive(name string) {
	s.t.Helper()
	work := filepath.Join(s.dir, "work")
	c := s.command("exec", name, "leak", "--json", "--", "how=wait", "where="+work)
	c.Dir = work
	c.Env = append(append(c.Env, s.env...), "PATH="+systemPath)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	ready := filepath.Join(work, "ready")
	await(s.t, func() bool { _, err := os.Stat(ready); return err == nil }, out.String)
	holders := 0
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range dirs {
		words, _ := os.ReadFile(dir + "/cmdline") // a process may end meanwhile, or belong to another user
		if left := s.found(words); len(left) > 0 {
			s.t.Errorf("%s: the words %q of a process hold %q", name, words, left)
		}
		env, _ := os.ReadFile(dir + "/environ")
		if name != "given" && bytes.Contains(env, []byte("SECRET="+canaryOf(name))) {
			holders++
		}
		if _, file, ok := bytes.Cut(env, []byte("\x00SECRET_FILE=")); ok && name == "given" {
			at, _, _ := bytes.Cut(file, []byte{0})
			text, _ := os.ReadFile(string(at))
			if string(text) == canaryOf(name)+"\n" {
				holders++
			}
			if left := s.found(env); len(left) > 0 {
				s.t.Errorf("%s: the environment of %s holds %q", name, words, left)
			}
		}
		if dir == fmt.Sprintf("/proc/%d", c.Process.Pid) && bytes.Contains(env, []byte("SECRET=")) {
			s.t.Errorf("%s: the runtime's own environment holds it", name)
		}
	}
	if holders == 0 {
		s.t.Errorf("%s: no child has its credential: %s", name, out.String())
	}
	if err := os.Remove(ready); err != nil {
		s.t.Error(err)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		s.t.Error(err)
	}
	var exit *exec.ExitError
	if err := c.Wait(); err == nil || !errors.As(err, &exit) {
		s.t.Errorf("%s: %v %s", name, err, out.String())
	}
	fmt.Fprintf(&s.said, "%s\n", out.String())
}
