package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"hcpx/internal/audit"
	"hcpx/internal/learn"
	"hcpx/internal/sandbox"
)

// asProgram makes this test binary the program itself.
const asProgram = "HCPXD_TEST_RUN"

func TestMain(m *testing.M) {
	if code, ok := sandbox.Inner(os.Args); ok {
		os.Exit(code)
	}
	if code, ok := learn.Stage(os.Args); ok {
		os.Exit(code)
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(run())
	}
	testscript.Main(m, programs())
}

// home is a store with the pack probe installed and activated.
type home struct {
	t   *testing.T
	dir string
}

const probe = `{"hcp":{"version":"1.1"},"id":"probe","version":"1.0.0","summary":"Tries a face.","adapter":"wrap",
"wrap":{"bin":"./probe.sh","uses":["sh","sleep","setsid"]},"verbs":{
"echo":{"summary":"Say a number again.","argv":["echo","{n}"],"output":"json","args":{"type":"object","properties":{"n":{"type":"number"},"t":{"type":"string"}},"required":["n"],"additionalProperties":false},"examples":[{"args":{"n":1}}]},
"wait":{"summary":"Wait.","argv":["wait","{seconds}"],"output":"text","args":{"type":"object","properties":{"seconds":{"type":"string"}},"required":["seconds"],"additionalProperties":false},"examples":[{"args":{"seconds":"1"}}]},
"big":{"summary":"Say much.","argv":["big"],"output":"text"},
"fail":{"summary":"Fail.","argv":["fail"],"output":"text"},
"set":{"summary":"Set a value.","argv":["echo","{n}"],"output":"json","args":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"],"additionalProperties":false},"examples":[{"args":{"n":1}}]}}}`

const probePolicy = `{"surface_id":"probe","verbs":{"echo":{"operation":"read","privacy":{"land":"personal"}},"wait":{"operation":"read","privacy":{"land":"personal"}},
"big":{"operation":"read","privacy":{"land":"personal"}},"fail":{"operation":"read","privacy":{"land":"personal"}},
"set":{"operation":"write","privacy":{"land":"personal"},"confirm":{"message":"Set it to {n}?"}}}}`

const probeScript = "#!/bin/sh\ncase $1 in\necho) printf '{\"n\":%s}' \"$2\";;\nwait) setsid sleep \"$2\" & trap '' TERM; sleep \"$2\"; sleep \"$2\";;\n" +
	"big) printf '%200000d' 7;;\nfail) echo no >&2; exit 3;;\nesac\n"

func newHome(t *testing.T) home {
	t.Helper()
	h := home{t, t.TempDir()}
	for name, text := range map[string]string{
		"probe/surface.json": probe, "probe/policy.json": probePolicy, "probe/probe.sh": probeScript,
		"probe/HARNESS.md":  "# Probe\n\nTries a face of the runtime.\n\n`hcpx exec probe echo -- n=1`\n",
		"store/config.toml": "[identity]\nagents = \"trust-flags\"\n", // whoever runs the tests, an agent too, is no part of them
	} {
		h.write(name, text)
	}
	h.run("install", "probe", "--allow-bin", "--as", "human:ada")
	h.run("activate", "probe", "--as", "human:ada")
	h.run("grant", "agent:raw", "verb.exec.write", "--pack", "probe", "--as", "human:ada")
	return h
}

func (h home) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		h.t.Fatal(err)
	}
}

func (h home) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = h.dir
	cmd.Env = []string{asProgram + "=1", "HCP_HOME=" + filepath.Join(h.dir, "store"), "HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "HCP_PRINCIPAL=human:ada"}
	return cmd
}

// run is one command line that must succeed; exec that may fail.
func (h home) run(args ...string) string {
	h.t.Helper()
	out, err := h.command(append(args, "--json")...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("hcpx %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (h home) exec(args ...string) string {
	out, _ := h.command(append([]string{"exec", "--json", "--as", "agent:raw"}, args...)...).Output()
	return strings.TrimSpace(string(out))
}

func (h home) audit() []audit.Entry {
	h.t.Helper()
	entries, err := audit.Tail(audit.Config{Dir: filepath.Join(h.dir, "store", "audit")}, 1000)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range entries { // how a short run was watched depends on the machine's load
		entries[i].Sandbox = bytes.ReplaceAll(entries[i].Sandbox, []byte(`"watched":"sampled",`), nil)
	}
	return entries
}

// client is a client without any library: lines over the streams of the real program.
type client struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	version string
	caps    string
	errs    *bytes.Buffer

	mu     sync.Mutex
	wake   *sync.Cond
	got    []message // in order
	closed bool
	next   int
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// dial starts hcpx mcp and a client of it, which speaks the version and calls itself raw.
func (h home) dial(version, caps string, args ...string) *client {
	h.t.Helper()
	c := &client{t: h.t, cmd: h.command(append([]string{"mcp"}, args...)...), version: version, caps: caps, errs: &bytes.Buffer{}}
	c.wake = sync.NewCond(&c.mu)
	c.cmd.Stderr = c.errs
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		h.t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go c.read(out)
	h.t.Cleanup(func() {
		c.in.Close()
		_ = c.cmd.Wait()
	})
	if version < "2026" {
		r := c.call("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"Raw","version":"1"}}`, version, caps))
		if !bytes.Contains(r.Result, []byte(`"protocolVersion":"`+version+`"`)) {
			h.t.Fatalf("%s was not agreed on: %s", version, r.Result)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// read keeps every line: each must be a message, for stdout carries nothing else.
func (c *client) read(out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		c.mu.Lock()
		if len(line) > 0 {
			var m message
			if json.Unmarshal(line, &m) != nil || !bytes.HasPrefix(line, []byte(`{"jsonrpc":"2.0"`)) {
				c.t.Errorf("stdout has something that is no message: %q", line)
			}
			c.got = append(c.got, m)
		}
		c.closed = err != nil
		c.wake.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// start sends a request and gives its id.
func (c *client) start(method, params string) string {
	c.mu.Lock()
	c.next++
	id := fmt.Sprint(c.next)
	c.mu.Unlock()
	if c.version >= "2026" {
		meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"Raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}`, c.version, c.caps)
		if params = strings.TrimPrefix(params, "{"); params != "}" {
			meta += ","
		}
		params = "{" + meta + params
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id
}

// await waits for the first message that fits.
func (c *client) await(what string, fits func(message) bool) message {
	c.t.Helper()
	timer := time.AfterFunc(30*time.Second, func() { c.mu.Lock(); c.closed = true; c.wake.Broadcast(); c.mu.Unlock() })
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if i := slices.IndexFunc(c.got, fits); i >= 0 {
			return c.got[i]
		}
		if c.closed {
			c.t.Fatalf("%s never came; %d messages did\n%s", what, len(c.got), c.errs)
		}
		c.wake.Wait()
	}
}

func (c *client) answer(id string) message {
	c.t.Helper()
	return c.await("the answer to "+id, func(m message) bool { return m.Method == "" && string(m.ID) == id })
}

func (c *client) call(method, params string) message {
	c.t.Helper()
	return c.answer(c.start(method, params))
}

// tool calls a tool and gives the envelope that it answered, as its bytes stand.
func (c *client) tool(name, args string) string {
	c.t.Helper()
	return c.envelope(c.call("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)))
}

func (c *client) envelope(m message) string {
	c.t.Helper()
	var r struct {
		Content []struct {
			Type, Text string
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(m.Result, &r); err != nil || len(r.Content) != 1 || m.Error != nil {
		c.t.Fatalf("%v %+v %s", err, m.Error, m.Result)
	}
	if r.Structured == nil {
		return r.Content[0].Text
	}
	if string(r.Structured) != r.Content[0].Text {
		c.t.Errorf("structured content and text differ:\n%s\n%s", r.Structured, r.Content[0].Text)
	}
	if ok := strings.HasPrefix(string(r.Structured), `{"ok":true`); ok == r.IsError {
		c.t.Errorf("isError is %v: %s", r.IsError, r.Structured)
	}
	return string(r.Structured)
}
