package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"hcpx/internal/adapter/composite"
)

// Process runs this process's own command line and gives its exit code. parts is what hcpxd does itself, and machine
// evaluates expressions in it; the core has neither.
func Process(parts *Daemon, machine composite.Machine) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := make(chan struct{})
	go signals(cancel, ready)
	env := System()
	env.Ready, env.Daemon, env.Machine = ready, parts, machine
	return Main(ctx, env)
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
