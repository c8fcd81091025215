package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/binding"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox/redteamtest"
)

// raid is a user's machine with the pack of attacks installed.
type raid struct {
	t                    *testing.T
	scene                *redteamtest.Scene
	home, store, program string
}

func newRaid(t *testing.T, place string) *raid {
	t.Helper()
	r := &raid{t: t, home: place + "/home", store: place + "/store", program: place + "/tools/attacker"}
	for _, dir := range []string{r.home, r.home + "/scratch", place + "/tools", place + "/pack", r.store} {
		r.done(os.Mkdir(dir, 0o755))
	}
	r.scene = redteamtest.New(t, r.home)
	r.copied("/proc/self/exe", r.program)
	for _, name := range []string{"surface.json", "policy.json", "HARNESS.md"} {
		text, err := os.ReadFile(filepath.Join(os.Getenv(packVar), name))
		r.done(err)
		r.done(os.WriteFile(filepath.Join(place, "pack", name), text, 0o644))
	}
	r.done(os.WriteFile(r.store+"/config.toml", []byte("[identity]\nagents = \"trust-flags\"\n"), 0o600))
	r.must(append([]string{"allow", r.program}, r.scene.Programs[:3]...)...)
	r.must("install", place+"/pack", "--allow-read", "--json")
	r.must("activate", "redteam")
	r.must("connect", "redteam")
	return r
}

// packVar names the directory of the pack to a test that was started again elsewhere.
const packVar = "REDTEAM_PACK"

// raided runs a test as every user, each with a machine of its own.
func raided(t *testing.T, run func(r *raid)) {
	if os.Getenv(packVar) == "" {
		dir, err := filepath.Abs("testdata/redteam")
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(packVar, dir)
	}
	redteamtest.Users(t, func(t *testing.T, place string) {
		for name, value := range redteamtest.Ambient() {
			t.Setenv(name, value)
		}
		run(newRaid(t, place))
	})
}

func (r *raid) done(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *raid) copied(from, to string) {
	src, err := os.Open(from)
	r.done(err)
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	r.done(err)
	_, err = io.Copy(dst, src)
	r.done(err)
	r.done(dst.Close())
}

// command is hcpx in the workspace, with everything in its environment that must not arrive.
func (r *raid) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	r.done(err)
	c := exec.Command(self, args...)
	c.Dir = r.scene.Land
	c.Env = []string{asProgram + "=1", "HOME=" + r.home, "HCP_HOME=" + r.store, "HCP_PRINCIPAL=human:ada", "PATH=" + r.scene.Land + ":/usr/bin:/bin"}
	ambient := redteamtest.Ambient()
	for _, name := range slices.Sorted(maps.Keys(ambient)) {
		c.Env = append(c.Env, name+"="+ambient[name])
	}
	return c
}

func (r *raid) must(args ...string) {
	r.t.Helper()
	if out, err := r.command(args...).CombinedOutput(); err != nil {
		r.t.Fatalf("hcpx %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// exec runs a command of the pack and gives its envelope.
func (r *raid) exec(verb string, args map[string]any) protocol.Result {
	r.t.Helper()
	return r.result(r.command("exec", "--json", "--workspace", r.scene.Land, "--envelope", r.envelope(verb, args, nil)))
}

func (r *raid) envelope(verb string, args, more map[string]any) string {
	r.t.Helper()
	text := map[string]any{"pack_id": "redteam", "verb_key": verb, "args": args}
	maps.Copy(text, more)
	raw, err := json.Marshal(text)
	r.done(err)
	file, err := os.CreateTemp(r.home, "envelope")
	r.done(err)
	_, err = file.Write(raw)
	r.done(err)
	r.done(file.Close())
	return file.Name()
}

func (r *raid) result(c *exec.Cmd) protocol.Result {
	r.t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run() // the envelope says it
	var got protocol.Result
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		r.t.Fatalf("no envelope: %v\n%s%s", err, out.String(), errs.String())
	}
	return got
}

// §10.2: the pack of attacks, installed and run as any pack, reports that nothing worked; the same program reports
// outside that everything does.
func Test_10_2_red_team_pack(t *testing.T) {
	raided(t, func(r *raid) {
		rows := redteamtest.Plain(r.scene.Rows())
		outside := r.outside(rows)
		for _, row := range rows {
			name := row.ID + " " + row.Name
			if !slices.Contains(outside.Worked, name) && !row.Lacks(outside.Why[name]) && !r.one(row) {
				r.t.Errorf("void: %s fails outside too: %s", name, outside.Why[name])
			}
		}
		r.scene.Reset(r.t)
		text := r.rows(rows...)
		got := r.exec("attack", map[string]any{"rows": string(text)})
		var inside redteamtest.Report
		if got.Error != nil {
			r.t.Fatalf("%+v", got.Error)
		}
		r.done(json.Unmarshal(got.Result, &inside))
		if inside.Tried != len(rows) || len(inside.Worked) > 0 {
			r.t.Errorf("of %d tried worked: %s", inside.Tried, strings.Join(inside.Worked, "; "))
		}
		r.t.Logf("%d attacks work outside, of %d inside none", len(outside.Worked), inside.Tried)
	})
}

// outside runs the pack's program without a sandbox.
func (r *raid) outside(rows []redteamtest.Row) (report redteamtest.Report) {
	r.t.Helper()
	rows = slices.Clone(rows)
	for i, row := range rows {
		if row.Control != nil {
			rows[i].Args = row.Control
		}
	}
	r.scene.Reset(r.t)
	c := exec.Command(r.program, redteamtest.Arg, "all")
	c.Dir, c.Stdin = r.scene.Land, bytes.NewReader(r.rows(rows...))
	c.Env = append(os.Environ(), "PATH="+r.scene.Land, "HOME="+r.scene.Outside, "TMPDIR="+r.scene.Outside)
	out, err := c.Output()
	r.done(err)
	r.done(json.Unmarshal(out, &report))
	return report
}

// one proves a row by itself: those before it may have changed what it needs.
func (r *raid) one(row redteamtest.Row) bool {
	r.scene.Reset(r.t)
	args := row.Args
	if row.Control != nil {
		args = row.Control
	}
	why, worked := r.scene.Control(r.t, row.Attack, args...)
	return worked || row.Lacks(why)
}

// §10.2, §10.5: escapes whose subject is a whole exec. What cannot have a control outside has its opposite beside it.
func Test_10_2_red_team_of_exec(t *testing.T) {
	raided(t, func(r *raid) {
		for name, attack := range map[string]func(*raid){
			"RT10 secrets in arguments and environments": (*raid).secrets,
			"RT27 flood of output":                       (*raid).flood,
			"RT28 argument that is an option":            (*raid).option,
			"RT29 another program of the name":           (*raid).shadow,
			"RT35 open when it fails":                    (*raid).container,
			"RT37 the caller's own opt-out":              (*raid).optOut,
			"RT38 policy from the workspace":             (*raid).policy,
			"store: what was checked is what runs":       (*raid).swapped,
		} {
			t.Run(name, func(t *testing.T) { r.scene.Reset(t); attack(&raid{t, r.scene, r.home, r.store, r.program}) })
		}
	})
}

// says runs the harmless command; the words come back.
func (r *raid) says(word string) protocol.Result { return r.exec("say", map[string]any{"word": word}) }

func (r *raid) refused(got protocol.Result, code protocol.Code) {
	r.t.Helper()
	if got.Error == nil || got.Error.Code != code {
		r.t.Errorf("want %s, have %+v %s", code, got.Error, got.Result)
	}
}

func (r *raid) well(got protocol.Result) {
	r.t.Helper()
	if !got.OK || string(bytes.TrimSpace(got.Result)) != `["word"]` {
		r.t.Errorf("%+v %s", got.Error, got.Result)
	}
}

// secrets: while a run has a credential, it stands in its own environment and in no argument and no other
// environment of this machine, and in no file but the one that the command itself wrote (§8.4).
func (r *raid) secrets() {
	began, looked := r.scene.Land+"/began", r.scene.Land+"/looked"
	c := r.command("exec", "--json", "--workspace", r.scene.Land, "redteam", "hold")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	r.done(c.Start())
	await(r.t, func() bool { text, err := os.ReadFile(began); return err == nil && len(text) > 0 }, out.String)
	if text, err := os.ReadFile(began); err != nil || string(text) != binding.MockCredential {
		r.t.Errorf("void: the command has no credential: %q %v", text, err)
	}
	holders := 0
	for _, file := range []string{"cmdline", "environ"} {
		all, err := filepath.Glob("/proc/[0-9]*/" + file)
		r.done(err)
		for _, at := range all {
			text, err := os.ReadFile(at)
			if err != nil || !bytes.Contains(text, []byte(binding.MockCredential)) {
				continue
			}
			words, err := os.ReadFile(filepath.Dir(at) + "/cmdline")
			if file == "environ" && err == nil && bytes.HasPrefix(words, []byte("attacker\x00"+redteamtest.Arg+"\x00hold\x00")) {
				holders++
				continue
			}
			r.t.Errorf("%s holds the credential: %q", at, words)
		}
	}
	if holders != 1 {
		r.t.Errorf("void: %d processes were seen to hold it", holders)
	}
	r.done(os.WriteFile(looked, nil, 0o600))
	r.done(c.Wait())
	r.done(os.Remove(began))
	for _, dir := range []string{r.home, r.store} {
		found, _ := exec.Command("grep", "-rlF", "--binary-files=text", "--exclude=attacker", "--exclude=hcpx", binding.MockCredential, dir).Output()
		if len(found) > 0 {
			r.t.Errorf("files hold the credential: %s", found)
		}
	}
}

func (r *raid) flood() {
	begin := time.Now()
	got := r.exec("flood", map[string]any{})
	r.refused(got, protocol.OutputTooLarge)
	if time.Since(begin) > 30*time.Second {
		r.t.Error("the flood was not cut off")
	}
	r.well(r.says("word"))
}

func (r *raid) option() {
	r.well(r.says("word"))
	for _, word := range []string{"--upload-pack=x", "-x", "-", "--"} {
		r.refused(r.says(word), protocol.InvalidArgs)
	}
}

// shadow: a program of that name in the caller's PATH, working directory and workspace is not the one that runs.
func (r *raid) shadow() {
	r.done(os.WriteFile(r.scene.Land+"/attacker", []byte("#!/bin/sh\necho '\"hijacked\"'\n"), 0o755))
	c := exec.Command("/bin/sh", "-c", "attacker")
	c.Env = r.command().Env
	if out, err := c.Output(); err != nil || !strings.Contains(string(out), "hijacked") {
		r.t.Errorf("void: PATH does not lead to it: %s %v", out, err)
	}
	r.well(r.says("word"))
}

// container takes kernel features away from hcpx: every command is refused, or nothing is weaker than it says.
func (r *raid) container() {
	for _, gone := range []string{"nothing", "landlock", "seccomp", "both", "no paths", "no range", "no names"} {
		c := r.command()
		c.Args = append([]string{c.Path, redteamtest.Arg, "blocked", gone, c.Path}, "exec", "--json", "--workspace", r.scene.Land, "redteam", "say", "--", "word=word")
		got := r.result(c)
		switch {
		case gone == "nothing":
			r.well(got)
		case got.OK && gone == "landlock": // by namespaces, where this user may make them
		case got.Error == nil || got.Error.Code != protocol.SandboxUnavailable || got.Error.Details["rule"] == nil:
			r.t.Errorf("%s: %+v %s", gone, got.Error, got.Result)
		}
	}
}

// optOut: nothing in a call opens the sandbox, and an agent cannot allow it to itself.
func (r *raid) optOut() {
	read := map[string]any{"rows": string(r.rows(redteamtest.Row{ID: "x", Name: "read", Attack: "read", Args: []string{r.scene.Secret}}))}
	for _, member := range []string{"native", "sandbox", "isolation", "no_sandbox", "options", "dangerously_disable_sandbox", "network", "reads"} {
		for _, value := range []any{true, false, "native-local", "none", map[string]any{"native": true}} {
			got := r.result(r.command("exec", "--json", "--workspace", r.scene.Land, "--envelope", r.envelope("attack", read, map[string]any{member: value})))
			r.refused(got, protocol.InvalidEnvelope)
		}
	}
	for _, flag := range []string{"--native", "--no-sandbox", "--isolation=native-local", "--unsafe", "--allow-native"} {
		if out, err := r.command("exec", "--json", flag, "redteam", "say", "--", "word=word").CombinedOutput(); err == nil {
			r.t.Errorf("%s was taken: %s", flag, out)
		}
	}
	c := r.command("exec", "--json", "--workspace", r.scene.Land, "--envelope", r.envelope("attack", read, nil))
	for _, name := range []string{"HCP_SANDBOX", "HCPX_SANDBOX", "HCP_NATIVE", "HCP_ISOLATION", "HCPX_NO_SANDBOX", "HCP_NETWORK"} {
		c.Env = append(c.Env, name+"=off")
	}
	var report redteamtest.Report
	r.done(json.Unmarshal(r.result(c).Result, &report))
	if report.Tried != 1 || len(report.Worked) != 0 {
		r.t.Errorf("%+v", report)
	}
	agent := r.command("allow", "--native", "redteam")
	agent.Env = append(agent.Env, "HCP_PRINCIPAL=agent:claude-code")
	if out, err := agent.CombinedOutput(); err == nil {
		r.t.Errorf("an agent allowed itself to leave: %s", out)
	}
}

func (r *raid) rows(rows ...redteamtest.Row) []byte {
	text, err := json.Marshal(rows)
	r.done(err)
	return text
}

// policy: files in the workspace that look like a pack, its policy, a store or settings change nothing.
func (r *raid) policy() {
	plan := func() string {
		out, err := r.command("exec", "--plan", "--json", "--workspace", r.scene.Land, "redteam", "say", "--", "word=word").Output()
		r.done(err)
		var got protocol.Result
		r.done(json.Unmarshal(out, &got))
		var world struct {
			Sandbox json.RawMessage `json:"sandbox"`
			Argv    json.RawMessage `json:"argv"`
			Plan    json.RawMessage `json:"plan"`
		}
		r.done(json.Unmarshal(out, &world))
		return fmt.Sprintf("%v %s %s %s", got.OK, world.Sandbox, world.Argv, world.Plan)
	}
	before := plan()
	block := `"isolation":"native-local","network":"full"`
	surface, err := os.ReadFile(filepath.Join(os.Getenv(packVar), "surface.json"))
	r.done(err)
	for name, text := range map[string]string{
		"surface.json": strings.Replace(string(surface), `"uses"`, block+`,"uses"`, 1), "policy.json": `{"surface_id":"redteam","verbs":{}}`,
		"config.toml": "[sandbox]\naccept = [\"signals\", \"metadata\"]\n", ".hcp/config.toml": "[sandbox]\naccept = [\"signals\"]\n", ".hcp/state.json": `{"native":["redteam"]}`,
		"redteam/surface.json": string(surface), ".config/hcpx/config.toml": "[sandbox]\naccept = [\"signals\"]\n",
	} {
		at := filepath.Join(r.scene.Land, name)
		r.done(os.MkdirAll(filepath.Dir(at), 0o755))
		r.done(os.WriteFile(at, []byte(text), 0o644))
	}
	if after := plan(); after != before {
		r.t.Errorf("the workspace changed the plan:\n%s\n%s", before, after)
	}
	r.well(r.says("word"))
}

// swapped exchanges the allowed program for another one, again and again, while it is checked and started; and a
// file of the pack in the store for a link that leads out. Neither other file ever runs.
func (r *raid) swapped() {
	evil := filepath.Dir(r.program) + "/evil"
	r.done(os.WriteFile(evil, []byte("#!/bin/sh\necho '\"hijacked\"'\n"), 0o755))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, r.program, unix.AT_FDCWD, evil, unix.RENAME_EXCHANGE)
			time.Sleep(500 * time.Microsecond)
		}
	}()
	ran, refused := 0, 0
	for range 20 {
		got := r.says("word")
		switch {
		case got.OK && string(bytes.TrimSpace(got.Result)) == `["word"]`:
			ran++
		case got.Error != nil && !strings.Contains(string(got.Result), "hijacked"):
			refused++
		default:
			r.t.Errorf("another program ran: %s", got.Result)
		}
	}
	cancel()
	<-ended
	if text, err := os.ReadFile(r.program); err != nil || bytes.HasPrefix(text, []byte("#!")) {
		r.done(os.Rename(evil, evil+".one"))
		r.done(os.Rename(r.program, evil))
		r.done(os.Rename(evil+".one", r.program))
	}
	r.t.Logf("%d ran, %d were refused", ran, refused)
	r.well(r.says("word"))
	files, err := filepath.Glob(r.store + "/packs/redteam/*/policy.json")
	r.done(err)
	if len(files) == 0 {
		files = []string{r.store + "/packs/redteam/policy.json"}
	}
	dir := filepath.Dir(files[0])
	r.done(os.Chmod(dir, 0o755))
	r.done(os.Rename(files[0], r.home+"/policy.json"))
	r.done(os.Symlink(r.home+"/policy.json", files[0]))
	r.refused(r.says("word"), protocol.PackTampered)
	r.done(os.Remove(files[0]))
	r.done(os.Rename(r.home+"/policy.json", files[0]))
}
