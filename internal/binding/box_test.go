package binding_test

import (
	"bytes"
	"context"
	"sync"

	"hcpx/internal/protocol"
)

// box keeps secrets in memory, with a lock for each name; what fails is chosen by the test.
type box struct {
	mu    sync.Mutex
	held  map[string][]byte
	locks map[string]chan struct{}
	sets  int
	full  func(set int) bool // whether that Set fails
}

func newBox() *box { return &box{held: map[string][]byte{}, locks: map[string]chan struct{}{}} }

func (b *box) Get(_ context.Context, name string) ([]byte, bool, *protocol.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, found := b.held[name]
	return bytes.Clone(v), found, nil
}

func (b *box) Set(_ context.Context, name string, value []byte) *protocol.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sets++; b.full != nil && b.full(b.sets) {
		return protocol.Fail(protocol.BindingFailed, "The disk is full.").WithHint("hcpx doctor")
	}
	b.held[name] = bytes.Clone(value)
	return nil
}

func (b *box) Delete(_ context.Context, name string) *protocol.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, name)
	return nil
}

func (b *box) Lock(ctx context.Context, name string) (func(), *protocol.Error) {
	b.mu.Lock()
	lock := b.locks[name]
	if lock == nil {
		lock = make(chan struct{}, 1)
		b.locks[name] = lock
	}
	b.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return sync.OnceFunc(func() { <-lock }), nil
	case <-ctx.Done():
		return nil, protocol.Fail(protocol.BindingFailed, "The lock is held.")
	}
}
