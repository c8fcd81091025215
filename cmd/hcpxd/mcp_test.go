package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hcpx/internal/audit"
)

const (
	echo  = `{"pack_id":"probe","verb_key":"echo","args":{"n":9007199254740993.10}}`
	forms = `{"elicitation":{}}`
)

// §6.6, HCP-12.2-5a, HCP-12.5-3a, HCP-14.4-1: one command is one command on every face: in each version of the protocol the answer is exec's, byte for
// byte, numbers too, and so is what the audit has, but for id, time and hashes.
func Test_6_6_MCPIsTheSameFaceInEveryVersion(t *testing.T) {
	h := newHome(t)
	words := [][]string{
		{"probe", "echo", "--", "n=9007199254740993.10"}, {"probe", "echo", "--", "n=many"}, {"probe", "none"}, {"probe", "fail"}, {"nothing", "x"},
	}
	envelopes := []string{echo, `{"pack_id":"probe","verb_key":"echo","args":{"n":"many"}}`, `{"pack_id":"probe","verb_key":"none"}`, `{"pack_id":"probe","verb_key":"fail"}`, `{"pack_id":"nothing","verb_key":"x"}`}
	own := cmpopts.IgnoreFields(audit.Entry{}, "Seq", "Time", "ID", "Prev", "MAC", "DurationMS")
	h.exec(words[0]...) // what only a first run writes
	var byExec []string
	before := len(h.audit())
	for _, w := range words {
		byExec = append(byExec, h.exec(w...))
	}
	want := h.audit()[before:]
	for _, version := range sdk.SupportedProtocolVersions() {
		before := len(h.audit())
		c := h.dial(version, `{}`)
		for i, e := range envelopes {
			if got := c.tool("hcp", e); got != byExec[i] {
				t.Errorf("%s: %s\nexec: %s\nmcp:  %s", version, e, byExec[i], got)
			}
		}
		if diff := cmp.Diff(want, h.audit()[before:], own); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
	}
	if !strings.Contains(byExec[0], "9007199254740993.10") {
		t.Error(byExec[0])
	}
}

// §12.2: what is no message is answered as an error, and the server lives on.
func Test_12_2_ALineThatIsNoMessageEndsNothing(t *testing.T) {
	h := newHome(t)
	c := h.dial("2025-11-25", `{}`)
	for line, code := range map[string]int{"{": -32700, "5": -32600, "[]": -32600, `{"jsonrpc":"1.0","id":77,"method":"ping"}`: -32600, strings.Repeat("x", 5<<20): -32600} {
		c.mu.Lock()
		c.got = nil
		c.mu.Unlock()
		c.send(line)
		if m := c.await("an error", func(m message) bool { return m.Error != nil }); m.Error.Code != code {
			t.Errorf("%.40s: %+v", line, m.Error)
		}
	}
	if got := c.tool("hcp", echo); !strings.HasPrefix(got, `{"ok":true`) {
		t.Error(got)
	}
	if r := c.call("tools/call", `{"name":"hcp","arguments":{"pack_id":"probe","pack_id":"x","verb_key":"echo"}}`); !strings.Contains(c.envelope(r), `"invalid_envelope"`) {
		t.Errorf("a member named twice: %s", r.Result)
	}
	if r := c.call("tools/call", `{"name":"grant","arguments":{}}`); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("an unknown tool: %s", r.Result)
	}
}

// §12.2: a client that sends all in one go and closes its end has its answers.
func Test_12_2_WhatWasAskedBeforeTheEndIsAnswered(t *testing.T) {
	h := newHome(t)
	cmd := h.command("mcp")
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hcp","arguments":` + echo + `}}`)
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), `"id":2,"result"`) {
		t.Errorf("%v %s", err, out)
	}
}

// §15.2: where the client can ask, a gated write is asked about there; what the person says counts once, as his approval,
// in the audit. Anything but an accept with true runs nothing.
func Test_15_2_AGatedWriteAsksThroughTheClient(t *testing.T) {
	h := newHome(t)
	c := h.dial("2025-11-25", forms)
	set := `{"pack_id":"probe","verb_key":"set","args":{"n":5}}`
	for _, tt := range []struct{ says, want string }{
		{`{"action":"accept","content":{"confirm":false}}`, `"reason":"rejected"`},
		{`{"action":"decline"}`, `"reason":"rejected"`},
		{`{"action":"cancel"}`, `"approval_id"`},
		{`{"action":"accept","content":{"confirm":"true"}}`, `"approval_id"`},
		{`{"action":"accept","content":{}}`, `"approval_id"`},
		{`{"action":"accept","content":{"confirm":true}}`, `{"ok":true,"pack_id":"probe","verb_key":"set","result":{"n":5}}`},
	} {
		c.mu.Lock()
		c.got = nil
		c.mu.Unlock()
		id := c.start("tools/call", `{"name":"hcp","arguments":`+set+`}`)
		q := c.await("a question", func(m message) bool { return m.Method == "elicitation/create" })
		var asked struct {
			Message string          `json:"message"`
			Schema  json.RawMessage `json:"requestedSchema"`
		}
		if json.Unmarshal(q.Params, &asked) != nil || !strings.Contains(asked.Message, "agent:raw asks to run probe/set") || !strings.Contains(asked.Message, "Set it to 5?") ||
			!strings.Contains(asked.Message, "probe.sh echo 5") || !strings.Contains(string(asked.Schema), `"required":["confirm"]`) {
			t.Errorf("the question does not show what runs: %s", q.Params)
		}
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, tt.says))
		if got := c.envelope(c.answer(id)); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.says, got)
		}
	}
	approved := slices.IndexFunc(h.audit(), func(e audit.Entry) bool {
		return e.Kind == audit.Change && e.Act == "approve" && e.Principal == "human:ada" && strings.Contains(string(e.Detail), `"through":"Raw"`)
	})
	if runs := len(ran(h)); approved < 0 || runs != 1 {
		t.Errorf("approval at %d of the audit, %d runs", approved, runs)
	}
}

// §15.2: where the caller's own word counts, a call without one asks as well, and the person's yes becomes it.
func Test_15_2_AServiceIsAskedForThroughTheClientToo(t *testing.T) {
	h := newHome(t)
	h.run("grant", "service:ci", "verb.exec.write", "--pack", "probe", "--as", "human:ada")
	c := h.dial("2025-11-25", forms, "--as", "service:ci")
	for says, want := range map[string]string{`{"action":"decline"}`: `"confirm_required"`, `{"action":"accept","content":{"confirm":true}}`: `{"ok":true`} {
		c.mu.Lock()
		c.got = nil
		c.mu.Unlock()
		id := c.start("tools/call", `{"name":"hcp","arguments":{"pack_id":"probe","verb_key":"set","args":{"n":5}}}`)
		q := c.await("a question", func(m message) bool { return m.Method == "elicitation/create" })
		if !strings.Contains(string(q.Params), "Set it to 5?") || !strings.Contains(string(q.Params), "echo") {
			t.Errorf("the question does not show what runs: %s", q.Params)
		}
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, says))
		if got := c.envelope(c.answer(id)); !strings.Contains(got, want) {
			t.Errorf("%s: %s", says, got)
		}
	}
	if got := c.tool("hcp", `{"pack_id":"probe","verb_key":"set","args":{"n":5},"confirm":true}`); !strings.HasPrefix(got, `{"ok":true`) {
		t.Error(got)
	}
}

// ran are the runs of writes.
func ran(h home) []audit.Entry {
	return slices.DeleteFunc(h.audit(), func(e audit.Entry) bool { return e.Kind != audit.Intent || e.Verb != "set" })
}

// §15.2: since 2026-07-28 the answer is the question, and the call comes again with what the person said. The state is
// single use and holds for that call alone.
func Test_15_2_InputRequiredIsBoundAndSingleUse(t *testing.T) {
	h := newHome(t)
	c := h.dial("2026-07-28", `{"elicitation":{"form":{}}}`)
	ask := func(n string) string {
		var r struct {
			Type     string                     `json:"resultType"`
			State    string                     `json:"requestState"`
			Requests map[string]json.RawMessage `json:"inputRequests"`
		}
		m := c.call("tools/call", `{"name":"hcp","arguments":{"pack_id":"probe","verb_key":"set","args":{"n":`+n+`}}}`)
		if json.Unmarshal(m.Result, &r) != nil || r.Type != "input_required" || r.State == "" || !strings.Contains(string(r.Requests["confirm"]), "Set it to "+n) {
			t.Fatalf("no question: %s", m.Result)
		}
		return r.State
	}
	again := func(n, state, says string) string {
		m := c.call("tools/call", fmt.Sprintf(`{"name":"hcp","arguments":{"verb_key":"set","args":{"n":%s},"pack_id":"probe"},"requestState":%q,"inputResponses":{"confirm":%s}}`, n, state, says))
		if strings.Contains(string(m.Result), "input_required") {
			return "asked anew"
		}
		return c.envelope(m)
	}
	const yes = `{"action":"accept","content":{"confirm":true}}`
	state := ask("7")
	if got := again("8", state, yes); got != "asked anew" {
		t.Errorf("the state of another call: %s", got)
	}
	if got := again("7", "made-up", yes); got != "asked anew" {
		t.Errorf("a state that was never given: %s", got)
	}
	if got := again("7", state, yes); !strings.HasPrefix(got, `{"ok":true`) {
		t.Errorf("what was asked: %s", got)
	}
	if got := again("7", state, yes); got != "asked anew" {
		t.Errorf("the state a second time: %s", got)
	}
	if got := again("9", ask("9"), `{"action":"decline"}`); !strings.Contains(got, `"rejected"`) {
		t.Errorf("a no: %s", got)
	}
	if got := again("10", ask("10"), `{"action":"accept","content":{"confirm":1}}`); !strings.Contains(got, `"approval_id"`) {
		t.Errorf("no boolean: %s", got)
	}
	if n := len(ran(h)); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// §15.2: where no client can ask, the refusal has the id of a request, and the repeat with it runs once it is approved.
func Test_15_2_WithoutAFormTheApprovalIsAskedElsewhere(t *testing.T) {
	h := newHome(t)
	id := regexp.MustCompile(`"approval_id":"([0-9A-Z]+)"`)
	for _, tt := range []struct{ name, caps, config string }{
		{"a client without forms", `{}`, ""},
		{"a client with addresses alone", `{"elicitation":{"url":{}}}`, ""},
		{"an operator who demands approvals", forms, "[confirm]\nagent = \"approval\"\n"},
	} {
		h.write("store/config.toml", "[identity]\nagents = \"trust-flags\"\n"+tt.config)
		c := h.dial("2025-11-25", tt.caps)
		got := id.FindStringSubmatch(c.tool("hcp", `{"pack_id":"probe","verb_key":"set","args":{"n":3},"confirm":true}`))
		if got == nil {
			t.Fatal(tt.name)
		}
		repeat := `{"pack_id":"probe","verb_key":"set","args":{"n":3},"confirm":"` + got[1] + `"}`
		if r := c.tool("hcp", repeat); !strings.Contains(r, `"pending"`) {
			t.Errorf("%s: %s", tt.name, r)
		}
		h.run("approvals", "approve", got[1], "--as", "human:ada")
		if r := c.tool("hcp", repeat); !strings.HasPrefix(r, `{"ok":true`) {
			t.Errorf("%s: %s", tt.name, r)
		}
	}
}

// §9.3: nobody who speaks MCP is a person, whatever the environment says; marks beat the client's name; only a service
// is named at the launch.
func Test_9_3_NobodyBehindMCPIsAPerson(t *testing.T) {
	h := newHome(t)
	who := func(c *client) string {
		c.t.Helper()
		got := c.tool("hcp", `{"pack_id":"probe","verb_key":"set","args":{"n":1}}`)
		return regexp.MustCompile(`[a-z]+:[a-z.-]+ lacks`).FindString(got)
	}
	h.run("revoke", "agent:raw", "verb.exec.write", "--as", "human:ada")
	if got := who(h.dial("2025-11-25", `{}`)); got != "agent:raw lacks" {
		t.Errorf("by the client's name: %q", got)
	}
	if got := who(h.dial("2025-11-25", `{}`, "--as", "service:ci")); got != "service:ci lacks" {
		t.Errorf("by --as: %q", got)
	}
	h.write("store/config.toml", "")
	marked := h.command("mcp")
	marked.Env = append(marked.Env, "CLAUDECODE=1")
	marked.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hcp","arguments":{"pack_id":"probe","verb_key":"set","args":{"n":1}}}}`)
	if out, err := marked.Output(); err != nil || !strings.Contains(string(out), "agent:claude-code lacks") {
		t.Errorf("by a mark: %v %s", err, out)
	}
	for _, as := range []string{"human:ada", "agent:other", "mothership:x", ""} {
		out, err := h.command("mcp", "--as", as, "--json").Output()
		if err == nil || len(out) > 0 {
			t.Errorf("--as %q: %v, and stdout has %q", as, err, out)
		}
	}
	if out, err := h.command("mcp", "--json", "--listen", "127.0.0.1:0").Output(); err == nil || len(out) > 0 {
		t.Errorf("flags that do not fit: %v, and stdout has %q", err, out)
	}
}

// §15.2: within an agent's own shell the client may be the agent, so it is not asked.
func Test_15_2_AClientInAnAgentsShellAnswersForNobody(t *testing.T) {
	h := newHome(t)
	h.run("grant", "agent:claude-code", "verb.exec.write", "--pack", "probe", "--as", "human:ada")
	h.write("store/config.toml", "")
	inner := h.command("mcp")
	cmd := exec.Command("sh", "-c", `"$0" mcp; exit $?`, inner.Path)
	cmd.Dir, cmd.Env = inner.Dir, append(inner.Env, "CLAUDECODE=1")
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hcp","arguments":{"pack_id":"probe","verb_key":"set","args":{"n":1}}}}`)
	if out, err := cmd.Output(); err != nil || strings.Contains(string(out), "elicitation/create") || !strings.Contains(string(out), "approval_id") {
		t.Errorf("%v %s", err, out)
	}
}

// §6.9, §12.2: a cancelled call kills what it started, and all of it; the server goes on.
func Test_6_9_CancellationKillsTheChild(t *testing.T) {
	h := newHome(t)
	c := h.dial("2025-11-25", `{}`)
	id := c.start("tools/call", `{"name":"hcp","arguments":{"pack_id":"probe","verb_key":"wait","args":{"seconds":"86399.25"}}}`)
	for len(processes("86399.25")) < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	for range 600 {
		if len(processes("86399.25")) == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if left := processes("86399.25"); len(left) > 0 {
		t.Errorf("%v survived", left)
	}
	if got := c.tool("hcp", echo); !strings.HasPrefix(got, `{"ok":true`) {
		t.Error(got)
	}
	// the end of the server is the end of what it runs
	c.start("tools/call", `{"name":"hcp","arguments":{"pack_id":"probe","verb_key":"wait","args":{"seconds":"86399.25"}}}`)
	for len(processes("86399.25")) < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	if left := processes("86399.25"); len(left) > 0 {
		t.Errorf("%v survived the server", left)
	}
}

// processes are those with the word on their command line.
func processes(word string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		if line, err := os.ReadFile(f); err == nil && slices.Contains(strings.Split(string(line), "\x00"), word) {
			found = append(found, f)
		}
	}
	return found
}

// §12.2: many calls at once are each answered with their own.
func Test_12_2_ManyCallsAtOnce(t *testing.T) {
	h := newHome(t)
	c := h.dial("2025-11-25", `{}`)
	ids := map[string]int{}
	for n := range 48 {
		ids[c.start("tools/call", fmt.Sprintf(`{"name":"hcp","arguments":{"pack_id":"probe","verb_key":"echo","args":{"n":%d}}}`, n))] = n
	}
	for id, n := range ids {
		if got := c.envelope(c.answer(id)); got != fmt.Sprintf(`{"ok":true,"pack_id":"probe","verb_key":"echo","result":{"n":%d}}`, n) {
			t.Error(got)
		}
	}
}

// §12.2, §6.6: an answer too large for a model is left in a file that only this user reads.
func Test_12_2_ALargeResultIsLeftInAFile(t *testing.T) {
	h := newHome(t)
	c := h.dial("2025-11-25", `{}`)
	var r struct {
		Result struct {
			File, Preview string
			Bytes         int
		}
	}
	got := c.tool("hcp", `{"pack_id":"probe","verb_key":"big"}`)
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.Result.File)
	if err != nil || len(text) != 200000 || r.Result.Bytes != 200000 || !strings.HasPrefix(string(text), r.Result.Preview) || len(r.Result.Preview) == 0 {
		t.Errorf("%v %d bytes; %.300s", err, len(text), got)
	}
	if info, err := os.Stat(r.Result.File); err != nil || info.Mode().Perm() != 0o600 || !strings.HasPrefix(r.Result.File, filepath.Join(h.dir, "store", "data", "local", "results")) {
		t.Errorf("%v %v", err, info)
	}
}

// HCP-12.2-2a, HCP-12.2-6, HCP-12.5-2, HCP-12.6-1a, HCP-14.4-2: one tool per command that this Principal could run; when what there is changes, the client is told.
func Test_12_2_6_TheListFollowsGrantsAndActivation(t *testing.T) {
	h := newHome(t)
	c := h.dial("2025-11-25", `{}`, "--tools", "commands", "--pack", "probe")
	names := func() (list []string) {
		var r struct {
			Tools []struct {
				Name, Description string
				Meta              map[string]string `json:"_meta"`
			}
		}
		if err := json.Unmarshal(c.call("tools/list", `{}`).Result, &r); err != nil {
			t.Fatal(err)
		}
		for _, tool := range r.Tools[1:] {
			list = append(list, tool.Name)
			if tool.Meta["hcp/pack"] != "probe" || strings.Contains(tool.Description, "[write · personal · confirm]") != (tool.Name == "probe__set") {
				t.Errorf("%+v", tool)
			}
		}
		return list
	}
	changed := func() {
		c.t.Helper()
		c.await("list_changed", func(m message) bool { return m.Method == "notifications/tools/list_changed" })
		c.mu.Lock()
		c.got = nil
		c.mu.Unlock()
	}
	if got := names(); !slices.Contains(got, "probe__set") || len(got) != 5 {
		t.Error(got)
	}
	if got := c.tool("probe__echo", `{"n":4}`); got != `{"ok":true,"pack_id":"probe","verb_key":"echo","result":{"n":4}}` {
		t.Error(got)
	}
	h.run("revoke", "agent:raw", "verb.exec.write", "--as", "human:ada")
	changed()
	if got := names(); slices.Contains(got, "probe__set") || len(got) != 4 {
		t.Error(got)
	}
	if got := c.tool("probe__set", `{"n":4}`); !strings.Contains(got, `"grant_missing"`) {
		t.Errorf("a tool that is not listed any more: %s", got)
	}
	h.run("deactivate", "probe", "--as", "human:ada")
	changed()
	if got := names(); len(got) != 0 {
		t.Error(got)
	}
	if got := c.tool("probe__echo", `{"n":4}`); !strings.Contains(got, `"pack_not_activated"`) {
		t.Error(got)
	}
}

// HCP-12.2-3: the skill of a pack is what hcp__read_skill and SEP-2640 give, with its digest.
func Test_12_2_3_SkillsAreServed(t *testing.T) {
	h := newHome(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		c := h.dial(version, `{}`)
		text := c.tool("hcp__read_skill", `{"pack_id":"probe"}`)
		var list struct {
			Skills []struct {
				URI       string
				Resources []struct{ Digest, URI string }
			}
		}
		if err := json.Unmarshal(c.call("skills/list", `{}`).Result, &list); err != nil || len(list.Skills) != 2 || list.Skills[0].URI != "skill://hcp-cli/SKILL.md" && list.Skills[0].URI != "skill://probe/SKILL.md" {
			t.Fatalf("%v %+v", err, list)
		}
		var read struct {
			Contents []struct{ Text string }
		}
		if err := json.Unmarshal(c.call("resources/read", `{"uri":"skill://probe/SKILL.md"}`).Result, &read); err != nil || len(read.Contents) != 1 || read.Contents[0].Text != text {
			t.Errorf("%v %+v", err, read)
		}
		if r := c.call("skills/get", `{"uri":"skill://nothing/SKILL.md"}`); r.Error == nil || r.Error.Code != -32602 {
			t.Errorf("%s", r.Result)
		}
		for _, want := range []string{"name: probe", "Tries a face of the runtime.", "`set` [write · personal · confirm]", `"n":{"type":"number"}`} {
			if !strings.Contains(text, want) {
				t.Errorf("the skill lacks %q:\n%s", want, text)
			}
		}
		if leads := c.tool("hcp__read_skill", `{}`); !strings.Contains(leads, "- probe: Tries a face of the runtime.\n") {
			t.Error(leads)
		}
	}
}

// §12.2: over HTTP who has the token, from this machine and from no page, is served; in each version, questions too.
func Test_12_2_HTTPIsForThisMachineAlone(t *testing.T) {
	h := newHome(t)
	cmd := h.command("mcp", "--http", "--listen", "127.0.0.1:0")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }()
	buf := make([]byte, 4096)
	n, _ := errs.Read(buf)
	for !strings.Contains(string(buf[:n]), "Bearer ") {
		m, err := errs.Read(buf[n:])
		if n += m; err != nil {
			t.Fatal(err)
		}
	}
	address := regexp.MustCompile(`http://\S+`).FindString(string(buf[:n]))
	token := regexp.MustCompile(`Bearer \S+`).FindString(string(buf[:n]))
	status := func(change func(*http.Request)) int {
		req, _ := http.NewRequest("POST", address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`))
		req.Header.Set("Authorization", token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		change(req)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for name, tt := range map[string]struct {
		want   int
		change func(*http.Request)
	}{
		"as it should be":         {200, func(*http.Request) {}},
		"no token":                {401, func(r *http.Request) { r.Header.Del("Authorization") }},
		"a wrong token":           {401, func(r *http.Request) { r.Header.Set("Authorization", token+"x") }},
		"a name that was rebound": {403, func(r *http.Request) { r.Host = "evil.example:" + r.URL.Port() }},
		"another port":            {403, func(r *http.Request) { r.Host = "127.0.0.1:1" }},
		"a page":                  {403, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }},
		"a file of a browser":     {403, func(r *http.Request) { r.Header.Set("Origin", "null") }},
		"a page of this machine":  {200, func(r *http.Request) { r.Header.Set("Origin", "http://localhost:3000") }},
		"another path":            {404, func(r *http.Request) { r.URL.Path = "/" }},
		"too much":                {413, func(r *http.Request) { r.Body = http.NoBody; r.ContentLength = 0; *r = *large(r) }},
	} {
		if got := status(tt.change); got != tt.want {
			t.Errorf("%s: %d, not %d", name, got, tt.want)
		}
	}
	overHTTP(t, h, address, token)
	for _, bad := range []string{"0.0.0.0:7411", "192.168.1.1:7411", "example.com:80", "127.0.0.1", ":7411"} {
		if out, err := h.command("mcp", "--http", "--listen", bad).CombinedOutput(); err == nil || !strings.Contains(string(out), "loopback") {
			t.Errorf("%s: %v %s", bad, err, out)
		}
	}
}

func large(r *http.Request) *http.Request {
	out, _ := http.NewRequest("POST", r.URL.String(), strings.NewReader(`{"x":"`+strings.Repeat("x", 5<<20)+`"}`))
	out.Header = r.Header
	return out
}

type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// overHTTP is the SDK's own client: some at once, with a question each that is answered.
func overHTTP(t *testing.T, h home, address, token string) {
	var all sync.WaitGroup
	for i := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			asked := 0
			c := sdk.NewClient(&sdk.Implementation{Name: "raw", Version: "1"}, &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked++
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
			}})
			version := []string{"2025-11-25", "2026-07-28"}[i%2]
			ss, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: address, HTTPClient: &http.Client{Transport: bearer{token}}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Errorf("%s: %v", version, err)
				return
			}
			defer ss.Close()
			for n := range 3 {
				res, err := ss.CallTool(t.Context(), &sdk.CallToolParams{Name: "hcp", Arguments: json.RawMessage(fmt.Sprintf(`{"pack_id":"probe","verb_key":"set","args":{"n":%d%d}}`, i+1, n))})
				if err != nil || res.IsError || asked != n+1 {
					t.Errorf("%s: %v %+v, asked %d times", version, err, res, asked)
				}
			}
		}()
	}
	all.Wait()
}
