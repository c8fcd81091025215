// Package vaulttest is what every place of secrets must pass (§8.3): the keyring of the OS and the vault.
package vaulttest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hcpx/internal/protocol"
	"hcpx/internal/vault"
)

// Place opens the same secrets anew at each call, as the next process does; Kind is what they are kept in.
type Place struct {
	Kind string
	Open func() vault.Store
}

// Run runs the suite; make gives a place without secrets.
func Run(t *testing.T, make func(t *testing.T) Place) {
	for name, fn := range map[string]func(*testing.T, Place){
		"§8.3 what was set is had by the next process": setAndGet,
		"§8.3 any bytes, up to 64 KiB":                 anyBytes,
		"§8.3 what is no secret or name is refused":    refused,
		"§8.3 names are kept apart":                    names,
		"§8.5 deleted is gone":                         deleted,
		"§8.3 forgotten is not looked for":             forgotten,
		"§8.3 a copy is given":                         copies,
		"§8.3 many at once":                            many,
		"§8.4 single flight":                           flight,
		"§8.4 a wait ends with its context":            canceled,
	} {
		t.Run(name, func(t *testing.T) { fn(t, make(t)) })
	}
}

func ok(t *testing.T, err *protocol.Error) {
	t.Helper()
	if err != nil {
		t.Fatal(err, err.Hint)
	}
}

func want(t *testing.T, s vault.Store, name, value string) {
	t.Helper()
	got, found, err := s.Get(t.Context(), name)
	ok(t, err)
	if found != (value != "") || string(got) != value {
		t.Errorf("%q: %d bytes, found %v, want %d bytes", name, len(got), found, len(value))
	}
}

func setAndGet(t *testing.T, p Place) {
	s := p.Open()
	want(t, s, "local/ada/transit", "")
	if where, err := s.Where(t.Context(), "local/ada/transit"); err != nil || where != "" {
		t.Errorf("before: %q, %v", where, err)
	}
	if kind := s.Kind(t.Context()); kind != p.Kind {
		t.Errorf("kind %q, want %q", kind, p.Kind)
	}
	ok(t, s.Check(t.Context()))
	ok(t, s.Set(t.Context(), "local/ada/transit", []byte("first-value")))
	want(t, s, "local/ada/transit", "first-value")
	want(t, p.Open(), "local/ada/transit", "first-value")
	ok(t, p.Open().Set(t.Context(), "local/ada/transit", []byte("second")))
	want(t, s, "local/ada/transit", "second")
	if where, err := p.Open().Where(t.Context(), "local/ada/transit"); err != nil || where != p.Kind {
		t.Errorf("after: %q, %v", where, err)
	}
	ok(t, p.Open().Check(t.Context()))
}

func anyBytes(t *testing.T, p Place) {
	s := p.Open()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for i, value := range []string{"\x00", "\n", "a\tb\r\n", string(all), strings.Repeat("\xff", vault.MaxValue)} {
		name := fmt.Sprint("bytes/", i)
		ok(t, s.Set(t.Context(), name, []byte(value)))
		want(t, p.Open(), name, value)
	}
}

func refused(t *testing.T, p Place) {
	s := p.Open()
	for _, value := range []string{"", strings.Repeat("x", vault.MaxValue+1)} {
		if err := s.Set(t.Context(), "name", []byte(value)); err == nil || err.Code != protocol.BindingFailed || err.Hint == "" {
			t.Errorf("%d bytes: %v", len(value), err)
		}
	}
	for _, name := range []string{"", "a\nb", "a\x00", "\xff", strings.Repeat("n", vault.MaxName+1)} {
		_, _, get := s.Get(t.Context(), name)
		_, lock := s.Lock(t.Context(), name)
		for _, err := range []*protocol.Error{get, lock, s.Set(t.Context(), name, []byte("value")), s.Delete(t.Context(), name)} {
			if err == nil || err.Code != protocol.InternalError {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	want(t, s, "name", "")
}

func names(t *testing.T, p Place) {
	s := p.Open()
	all := []string{"a", "A", "a ", " a", "a/b", "a\\b", "é", "e\u0301", "name=value", "\"quoted\" 'it' $HOME *", strings.Repeat("n", vault.MaxName)}
	for _, name := range all {
		ok(t, s.Set(t.Context(), name, []byte("of "+name)))
	}
	for _, name := range all {
		want(t, p.Open(), name, "of "+name)
	}
	ok(t, s.Delete(t.Context(), "a"))
	for _, name := range all[1:] {
		want(t, s, name, "of "+name)
	}
}

func deleted(t *testing.T, p Place) {
	s := p.Open()
	ok(t, s.Delete(t.Context(), "never"))
	ok(t, s.Set(t.Context(), "gone", []byte("value")))
	ok(t, s.Set(t.Context(), "stays", []byte("other")))
	ok(t, p.Open().Delete(t.Context(), "gone"))
	ok(t, s.Delete(t.Context(), "gone"))
	want(t, s, "gone", "")
	want(t, s, "stays", "other")
	if where, err := s.Where(t.Context(), "gone"); err != nil || where != "" {
		t.Errorf("%q, %v", where, err)
	}
	ok(t, s.Set(t.Context(), "gone", []byte("again")))
	want(t, s, "gone", "again")
}

func forgotten(t *testing.T, p Place) {
	s := p.Open()
	ok(t, s.Set(t.Context(), "lost", []byte("value")))
	left, err := s.Forget(t.Context(), "lost")
	ok(t, err)
	if (left == vault.Keyring) != (p.Kind == vault.Keyring) {
		t.Errorf("left in %q", left)
	}
	want(t, p.Open(), "lost", "")
	ok(t, s.Set(t.Context(), "lost", []byte("anew")))
	want(t, s, "lost", "anew")
}

func copies(t *testing.T, p Place) {
	s := p.Open()
	value := []byte("the value")
	ok(t, s.Set(t.Context(), "name", value))
	clear(value)
	got, _, err := s.Get(t.Context(), "name")
	ok(t, err)
	clear(got)
	want(t, s, "name", "the value")
}

func many(t *testing.T, p Place) {
	var all sync.WaitGroup
	one := p.Open()
	for i := range 16 {
		all.Go(func() {
			s := one
			if i%2 == 0 {
				s = p.Open()
			}
			name := fmt.Sprint("many/", i%8)
			value := bytes.Repeat([]byte{byte('a' + i%8)}, 1000)
			if err := s.Set(t.Context(), name, value); err != nil {
				t.Error(err)
			}
			got, found, err := s.Get(t.Context(), name)
			if err != nil || !found || !bytes.Equal(got, value) {
				t.Errorf("%s: %d bytes, %v, %v", name, len(got), found, err)
			}
		})
	}
	all.Wait()
	for i := range 8 {
		want(t, p.Open(), fmt.Sprint("many/", i), strings.Repeat(string(rune('a'+i)), 1000))
	}
}

func flight(t *testing.T, p Place) {
	var inside, count atomic.Int32 // the lock is the system's: the race detector does not see it
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s := p.Open()
			unlock, err := s.Lock(t.Context(), "one")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			defer unlock() // twice is harmless
			if inside.Add(1) != 1 {
				t.Error("two hold the lock")
			}
			if err := s.Set(t.Context(), "one", []byte("set while it is held")); err != nil {
				t.Error(err)
			}
			inside.Add(-1)
			count.Add(1)
		})
	}
	all.Wait()
	if n := count.Load(); n != 8 {
		t.Errorf("%d of 8 had it", n)
	}
	first, err := p.Open().Lock(t.Context(), "one")
	ok(t, err)
	defer first()
	second, err := p.Open().Lock(t.Context(), "two")
	ok(t, err)
	second()
}

func canceled(t *testing.T, p Place) {
	unlock, err := p.Open().Lock(t.Context(), "held")
	ok(t, err)
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := p.Open().Lock(ctx, "held"); err == nil || err.Code != protocol.Canceled {
		t.Errorf("canceled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Open().Lock(ctx, "held"); err == nil || err.Code != protocol.BindingFailed || err.Hint == "" {
		t.Errorf("timed out: %v", err)
	}
}
