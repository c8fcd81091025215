// Command hcpxd is what stays up or speaks a heavy protocol (§11). hcpx finds it beside itself and hands its command
// line on; it has the same tree, and does the words that the core hands over.
package main

import (
	"os"

	"hcpx/internal/cli"
	"hcpx/internal/learn"
	"hcpx/internal/sandbox"
)

func main() {
	if code, ok := sandbox.Inner(os.Args); ok {
		os.Exit(code)
	}
	if code, ok := learn.Stage(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(run())
}

func run() int { return cli.Process(&cli.Daemon{MCP: serveMCP}) }
