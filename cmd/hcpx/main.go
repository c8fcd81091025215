// Command hcpx is the core of the runtime: everything that is called once per command (§11). Also
// installed as hcp. It only turns signals into a cancelled context and hands on the exit code.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"hcpx/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return cli.Main(ctx, cli.System())
}
