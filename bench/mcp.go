package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// The tables of hcpx mcp (§12.2): a warm call of a sandboxed tiny program against a bare fork and exec, and from the
// spawn to the first answer against the smallest server of the SDK.

const (
	smallCase = "the SDK's server, ungoverned exec"
	warmCase  = "hcpx mcp, governed and sandboxed"
	coldCase  = "hcpx mcp, to the first answer"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n"

// speaker is an MCP server as a host has it.
type speaker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (s *setup) speak(argv ...string) (*speaker, error) {
	p := &speaker{cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Dir, p.cmd.Env = s.dir, s.command("one").Env
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.ask(initialize, `"protocolVersion"`)
}

// ask sends a line and wants something in the answer.
func (p *speaker) ask(line, want string) error {
	if _, err := io.WriteString(p.in, line); err != nil {
		return err
	}
	answer, err := p.out.ReadBytes('\n')
	if err == nil && !bytes.Contains(answer, []byte(want)) {
		err = fmt.Errorf("the answer is %s", answer)
	}
	return err
}

func (p *speaker) close() error {
	if err := p.in.Close(); err != nil {
		return err
	}
	return p.cmd.Wait()
}

func (s *setup) servers() (small, daemon string, err error) {
	small, daemon = filepath.Join(s.dir, "bin", "mcpsmall"), filepath.Join(s.dir, "bin", "hcpxd")
	for out, pkg := range map[string]string{small: "./bench/mcpsmall", daemon: "./cmd/hcpxd"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if msg, err := cmd.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("build %s: %w: %s", pkg, err, msg)
		}
	}
	return small, daemon, nil
}

func warmTable(s *setup) (table, error) {
	small, _, err := s.servers()
	if err != nil {
		return table{}, err
	}
	bareServer, err := s.speak(small, s.hello)
	if err != nil {
		return table{}, err
	}
	governed, err := s.speak(s.hcpx, "mcp")
	if err != nil {
		return table{}, err
	}
	call := func(p *speaker, tool, args, want string) func() error {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", tool, args)
		return func() error { return p.ask(line, want) }
	}
	return table{
		cases: []one{
			{"bare fork and exec, fresh thread", func() error { return bare(s.hello) }},
			{smallCase, call(bareServer, "run", `{}`, `"text"`)},
			{warmCase, call(governed, "hcp", `{"pack_id":"hello","verb_key":"say"}`, `"ok":true`)},
		},
		goals: map[string]string{warmCase: "≤ 1.6"},
		third: smallCase, share: map[string]string{warmCase: "for comparison"},
	}, nil
}

func firstTable(s *setup) (table, error) {
	small, _, err := s.servers()
	if err != nil {
		return table{}, err
	}
	start := func(argv ...string) func() error {
		return func() error {
			p, err := s.speak(argv...)
			if err != nil {
				return err
			}
			return p.close()
		}
	}
	return table{
		cases: []one{{"the SDK's smallest server", start(small, s.hello)}, {coldCase, start(s.hcpx, "mcp")}},
		goals: map[string]string{coldCase: "≤ 2.0"},
	}, nil
}
