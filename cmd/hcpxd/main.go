// Command hcpxd is what stays up or speaks a heavy protocol (§11). hcpx finds it beside itself and hands its command
// line on; it has the same tree, and does the words that the core hands over. As a worker of hcpx it evaluates the
// expressions of composites (§3.5).
package main

import (
	"os"

	"hcpx/internal/cli"
	"hcpx/internal/jq"
	"hcpx/internal/jq/worker"
	"hcpx/internal/learn"
	"hcpx/internal/sandbox"
)

func main() {
	if code, ok := worker.Stage(os.Args, jq.New(), os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	if code, ok := sandbox.Inner(os.Args); ok {
		os.Exit(code)
	}
	if code, ok := learn.Stage(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(run())
}

func run() int {
	return cli.Process(&cli.Daemon{Demo: cli.Demo, ImportOpenAPI: importOpenAPI, MCP: serveMCP}, jq.New())
}
