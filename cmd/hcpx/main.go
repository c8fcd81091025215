// Command hcpx is the core of the runtime: everything that is called once per command (§11). Also
// installed as hcp. It hands on the exit code of its command line, unless the sandbox started this program again for a
// stage of its own.
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

func run() int { return cli.Process(nil, nil) }
