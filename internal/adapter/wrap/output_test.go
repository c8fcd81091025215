package wrap

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/adapter"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

func Test_6_5_Output(t *testing.T) {
	for name, test := range map[string]struct {
		form, stdout, want string // want "" = invalid_result
		replaced           int
	}{
		"one value":                           {asJSON, " {\"a\": 1}\r\n", `{"a":1}`, 0},
		"numbers keep their text":             {asJSON, `[9007199254740993,0.12345678901234567890,1.0,1E5]`, `[9007199254740993,0.12345678901234567890,1.0,1E5]`, 0},
		"a bare string":                       {asJSON, `"x"`, `"x"`, 0},
		"nothing":                             {asJSON, " \n", "", 0},
		"two values":                          {asJSON, "1 2", "", 0},
		"text behind":                         {asJSON, "{} done", "", 0},
		"invalid UTF-8":                       {asJSON, "\"\xff\"", "", 0},
		"a member named twice":                {asJSON, `{"a":1,"a":2}`, "", 0},
		"too deep":                            {asJSON, strings.Repeat("[", 200) + strings.Repeat("]", 200), "", 0},
		"lines":                               {asNDJSON, "1\n\n  \r\n{\"a\":[]}\r\n\"x\"", `[1,{"a":[]},"x"]`, 0},
		"no lines":                            {asNDJSON, "", `[]`, 0},
		"a line of two values":                {asNDJSON, "1\n2 3\n", "", 0},
		"a line of invalid UTF-8":             {asNDJSON, "1\n\"\xc3\"\n", "", 0},
		"a value over two lines":              {asNDJSON, "{\n}", "", 0},
		"text":                                {asText, "a\nb\n", `"a\nb"`, 0},
		"text: one LF with a CR goes":         {asText, "a\r\n\r\n", `"a\r\n"`, 0},
		"text: a CR alone stays":              {asText, "a\r", `"a\r"`, 0},
		"text: nothing":                       {asText, "", `""`, 0},
		"text: invalid UTF-8 is replaced":     {asText, "a\xff\xfeb\xc3", "\"a\uFFFD\uFFFDb\uFFFD\"", 3},
		"text: a replacement character stays": {asText, "\uFFFD", "\"\uFFFD\"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			v, replaced, err := parse(test.form, []byte(test.stdout))
			if test.want == "" {
				if err == nil || err.Code != protocol.InvalidResult || v != nil || !strings.HasSuffix(err.Message, ".") {
					t.Fatalf("%v %v, want invalid_result", v, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(v.Append(nil)); got != test.want || replaced != test.replaced {
				t.Errorf("%s with %d replaced, want %s with %d", got, replaced, test.want, test.replaced)
			}
		})
	}
}

func Test_6_5_Tail(t *testing.T) {
	for _, test := range []struct {
		in   string
		n    int
		want string
	}{{"", 4, ""}, {"abc", 4, "abc"}, {"abcdef", 4, "cdef"}, {"aüü", 3, "ü"}, {"a🚋b", 4, "b"}, {"\x80\x80\x80\x80\x80", 4, "\uFFFD"}, {"ab\xff", 8, "ab\uFFFD"}} {
		if got := Tail([]byte(test.in), test.n); got != test.want {
			t.Errorf("Tail(%q, %d) is %q, want %q", test.in, test.n, got, test.want)
		}
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n"), 4)
	f.Add([]byte("a\xff🚋\r\n\n2"), 3)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		n &= 0xff
		if tail := Tail(b, n); !utf8.ValidString(tail) || len(tail) > n {
			t.Errorf("the tail %q of %d", tail, n)
		}
		for _, form := range []string{asJSON, asNDJSON, asText} {
			v, _, err := parse(form, b)
			if (v == nil) == (err == nil) {
				t.Errorf("%s: value %v and error %v", form, v, err)
			}
			if v != nil && !utf8.Valid(v.Append(nil)) {
				t.Errorf("%s: not UTF-8", form)
			}
			if form == asText && err != nil {
				t.Errorf("text refused: %v", err)
			}
		}
	})
}

// box is a sandbox.Box that has already run.
type box struct {
	outcome *sandbox.Outcome
	err     *protocol.Error
}

func (b box) Run(context.Context) (*sandbox.Outcome, *protocol.Error) { return b.outcome, b.err }
func (b box) Close() error                                            { return nil }

func Test_6_3_Step9_Failures(t *testing.T) {
	long := strings.Repeat("ü", 4000)
	for name, test := range map[string]struct {
		outcome sandbox.Outcome
		code    protocol.Code
		details map[string]any
	}{
		"an exit code":   {sandbox.Outcome{Exit: 3, Stderr: []byte("no\n")}, protocol.CommandFailed, map[string]any{"exit_code": 3, "signal": nil, "stderr_tail": "no\n", "stdout_tail": ""}},
		"a signal":       {sandbox.Outcome{Exit: -1, Signal: "SIGSEGV"}, protocol.CommandFailed, map[string]any{"exit_code": nil, "signal": "SIGSEGV", "stderr_tail": "", "stdout_tail": ""}},
		"a limit":        {sandbox.Outcome{Exit: -1, Signal: "SIGXCPU", Limit: "cpu"}, protocol.CommandFailed, map[string]any{"exit_code": nil, "signal": "SIGXCPU", "limit": "cpu", "stderr_tail": "", "stdout_tail": ""}},
		"a limit with 0": {sandbox.Outcome{Limit: "file_size"}, protocol.CommandFailed, map[string]any{"exit_code": 0, "signal": nil, "limit": "file_size", "stderr_tail": "", "stdout_tail": ""}},
		"time":           {sandbox.Outcome{Exit: -1, Signal: "SIGKILL", TimedOut: true}, protocol.Timeout, map[string]any{"exit_code": nil, "signal": "SIGKILL", "limit": "wall", "stderr_tail": "", "stdout_tail": ""}},
		"time with 0":    {sandbox.Outcome{TimedOut: true, Stdout: []byte("{}")}, protocol.Timeout, map[string]any{"exit_code": 0, "signal": nil, "limit": "wall", "stderr_tail": "", "stdout_tail": "{}"}},
		"cancelled":      {sandbox.Outcome{Exit: -1, Canceled: true, TimedOut: true}, protocol.Canceled, map[string]any{"exit_code": nil, "signal": nil, "stderr_tail": "", "stdout_tail": ""}},
		"output":         {sandbox.Outcome{Exit: -1, Signal: "SIGKILL", Overflow: true}, protocol.OutputTooLarge, map[string]any{"exit_code": nil, "signal": "SIGKILL", "limit": "output", "stderr_tail": "", "stdout_tail": ""}},
		"denied":         {sandbox.Outcome{Exit: 1, Denied: []string{"read /x"}}, protocol.CommandFailed, map[string]any{"exit_code": 1, "signal": nil, "denied": []string{"read /x"}, "stderr_tail": "", "stdout_tail": ""}},
		"long tails":     {sandbox.Outcome{Exit: 1, Stderr: []byte("x" + long)}, protocol.CommandFailed, map[string]any{"exit_code": 1, "signal": nil, "stderr_tail": long[len(long)-4096:], "stdout_tail": ""}},
		"not JSON":       {sandbox.Outcome{Stdout: []byte("x y")}, protocol.InvalidResult, map[string]any{"line": 1, "column": 1, "stderr_tail": "", "stdout_tail": "x y"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustCompile(t, `"argv":[]`)
			out, err := c.Run(t.Context(), &adapter.Run{Box: box{outcome: &test.outcome}})
			if err == nil || err.Code != test.code || out == nil || out.Outcome == nil || out.Value != nil {
				t.Fatalf("%+v, %v; want %s", out, err, test.code)
			}
			if diff := cmp.Diff(test.details, err.Details); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// §10.2: who may name hosts is told how the one that was refused is named.
func Test_10_2_RefusedHostsAreHinted(t *testing.T) {
	for denied, want := range map[string]string{
		"connect api.example.org:443: not listed":   "hcpx allow --host mirror api.example.org:443",
		"connect 10.0.0.5:5432: private address":    "hcpx allow --host mirror 10.0.0.5:5432",
		"connect [::1]:1: loopback address":         "hcpx allow --host mirror '[::1]:1'",
		"name evil.example":                         "hcpx allow --host mirror evil.example:PORT",
		"name evil.example: does not resolve":       "",
		"connect api.example.org:443: no answer":    "",
		"connect udp 8.8.8.8:53: no datagrams":      "",
		"connect of a socket that is no TCP socket": "",
		"connect 0.0.0.0:80: unspecified address":   "",
		"connect :443: not listed":                  "",
		"connect -rf:443: not listed":               "",
		"connect --dangerous:443: not listed":       "",
		"name -rf":                                  "",
		"name a\\59id":                              "",
		"and 3 more":                                "",
		"metadata of /x":                            "",
	} {
		for _, operator := range []bool{true, false} {
			c := &command{pack: "mirror", block: &manifest.WrapBlock{Network: manifest.Network{OperatorHosts: operator}}}
			hint := want
			if !operator {
				hint = ""
			}
			if err := c.failure(&sandbox.Outcome{Exit: 1, Denied: []string{denied}}, sandbox.Limits{}); err == nil || err.Hint != hint {
				t.Errorf("%s: %+v, want the hint %q", denied, err, hint)
			}
		}
	}
	c := &command{pack: "mirror", block: &manifest.WrapBlock{Network: manifest.Network{OperatorHosts: true}}}
	denied := []string{"connect 0.0.0.0:80: unspecified address", "name -rf", "connect [2001:4860:4860::8888]:443: not listed", "name later.example"}
	err := c.failure(&sandbox.Outcome{Exit: 1, Denied: denied}, sandbox.Limits{})
	words, fault := exec.Command("sh", "-c", "set -- "+err.Hint+`; shift 4; printf "%s\n" "$@"`).Output()
	if fault != nil || string(words) != "[2001:4860:4860::8888]:443\n" {
		t.Errorf("the first that can be: %q is %q to a shell, %v", err.Hint, words, fault)
	}
}

func Test_6_5_Run(t *testing.T) {
	c := mustCompile(t, `"argv":[],"ok_exit":[0,1],"output":"text"`)
	out, err := c.Run(t.Context(), &adapter.Run{Box: box{outcome: &sandbox.Outcome{Exit: 1, Stdout: []byte("a\xff\n")}}})
	if err != nil || string(out.Value.Append(nil)) != "\"a\uFFFD\"" || out.Replaced != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	refusal := protocol.Fail(protocol.SandboxUnavailable, "No.")
	if out, err := c.Run(t.Context(), &adapter.Run{Box: box{err: refusal}}); out != nil || err != refusal {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := c.Run(t.Context(), &adapter.Run{}); err == nil || err.Code != protocol.InternalError {
		t.Errorf("without a box: %v", err)
	}
}
