// Command hcpx is the core of the runtime: everything that is called once per command (§11). Also
// installed as hcp. It only turns signals into a cancelled context and hands on the exit code, unless the sandbox started
// this program again for a stage of its own.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

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

func run() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := make(chan struct{})
	go signals(cancel, ready)
	env := cli.System()
	env.Ready = ready
	return cli.Main(ctx, env)
}

// signals cancels at the first one; a second ends the process at once. A closed terminal and a quit cancel alike,
// and leave no trace of Go behind. It is set up beside the work, since Go's hand-over to its signal thread costs a
// tenth of a short command; what starts a child waits for ready.
func signals(cancel func(), ready chan<- struct{}) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGQUIT)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) { // what nohup, or a shell for its background, ignores stays ignored
			signal.Notify(c, s)
		}
	}
	close(ready)
	<-c
	signal.Stop(c)
	cancel()
}
