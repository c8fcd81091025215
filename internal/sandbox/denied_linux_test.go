package sandbox

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// §10.2: a report of refusals says when there are more, and no destination hides others by being tried again.
func Test_10_2_denied_counts_destinations(t *testing.T) {
	var r refusals
	if got := r.report(); len(got) > 0 {
		t.Errorf("nothing was refused: %q", got)
	}
	for range 20 {
		r.add("connect 10.0.0.5:5432: private address")
		r.add("connect udp 8.8.8.8:53: no datagrams")
		r.add("connect 8.8.8.8:53: not listed")
		r.add("name evil.example")
		r.add("name evil.example: does not resolve")
		r.add("metadata of /etc/passwd")
	}
	want := []string{"connect 10.0.0.5:5432: private address", "connect udp 8.8.8.8:53: no datagrams", "name evil.example", "metadata of /etc/passwd"}
	if got := r.report(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for n := range 7 {
		r.add(fmt.Sprintf("connect 10.0.0.6:%d: private address", n+1))
	}
	if got := r.report(); len(got) != 9 || got[8] != "and 3 more" || got[7] != "connect 10.0.0.6:4: private address" {
		t.Errorf("%q", got)
	}
	for n := range 5000 {
		r.add(fmt.Sprintf("name n%d.example", n))
	}
	if got := r.report(); len(got) != 9 || got[8] != "and more than 1016 more" || len(r.seen) > maxCounted+1 {
		t.Errorf("%q, %d kept", got, len(r.seen))
	}
}

// §6.9: a call that is still answered when its processes are dead holds up nobody for long, and the broker is used no more.
func Test_6_9_run_ends_although_a_call_goes_on(t *testing.T) {
	b := newBroker(-1)
	if !b.endRun() {
		t.Error("a run without calls has not ended")
	}
	b.begun = true
	over := b.over(false)
	if !b.endRun() {
		t.Error("a run whose calls have returned has not ended")
	}
	select {
	case <-over:
	default:
		t.Error("calls are not told that the run is over")
	}
	b.turn.RLock() // a call
	begin := time.Now()
	if b.endRun() || time.Since(begin) > 10*endTime {
		t.Errorf("a call goes on: %v", time.Since(begin))
	}
	b.turn.RUnlock()
}
