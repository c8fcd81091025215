package app

import (
	"context"
	"sync/atomic"
	"time"

	"hcpx/internal/audit"
	"hcpx/internal/binding"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// Watch counts what the doors of one App did, so that a vector can prove that nothing ran (§14.3). The doors
// count, not the rules that ask them.
type Watch struct{ minted, spawned, intents, outcomes, denials atomic.Int64 }

// Counts is what a Watch has seen so far.
type Counts struct{ Minted, Spawned, Intents, Outcomes, Denials int }

// Counts reads the counters.
func (w *Watch) Counts() Counts {
	return Counts{
		Minted: int(w.minted.Load()), Spawned: int(w.spawned.Load()),
		Intents: int(w.intents.Load()), Outcomes: int(w.outcomes.Load()), Denials: int(w.denials.Load()),
	}
}

type watchedSandbox struct {
	sandbox.Sandbox
	w *Watch
}

func (s watchedSandbox) Prepare(spec *sandbox.Spec) (sandbox.Box, *protocol.Error) {
	box, err := s.Sandbox.Prepare(spec)
	if err != nil {
		return nil, err
	}
	return watchedBox{box, s.w}, nil
}

type watchedBox struct {
	sandbox.Box
	w *Watch
}

func (b watchedBox) Run(ctx context.Context) (*sandbox.Outcome, *protocol.Error) {
	out, err := b.Box.Run(ctx)
	if err == nil {
		b.w.spawned.Add(1)
	}
	return out, err
}

type watchedHub struct {
	binding.Hub
	w *Watch
}

func (h watchedHub) Mint(ctx context.Context, b *manifest.Binding, s binding.Scope, lasts time.Duration) (*binding.Minted, *protocol.Error) {
	m, err := h.Hub.Mint(ctx, b, s, lasts)
	if err == nil && secret(b) {
		h.w.minted.Add(1)
	}
	return m, err
}

// secret says whether a mint gives a credential at all: public and a local hub without source give none.
func secret(b *manifest.Binding) bool {
	return b.Mode != "" && b.Mode != binding.Public && (b.Mode != binding.Local || b.Source != nil)
}

type watchedLog struct {
	audit.Log
	w *Watch
}

func (l watchedLog) Append(e audit.Entry, durable bool) error {
	if err := l.Log.Append(e, durable); err != nil {
		return err
	}
	switch e.Kind {
	case audit.Intent:
		l.w.intents.Add(1)
	case audit.Outcome:
		l.w.outcomes.Add(1)
	case audit.Denial:
		l.w.denials.Add(1)
	}
	return nil
}
