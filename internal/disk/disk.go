// Package disk is how hcpx opens, locks and keeps files of its own (§11.3, §8.3): regular ones alone, never through a
// link, never waiting for somebody at the other end, under locks that the system frees when their holder dies. It knows
// no names and no formats.
package disk

import (
	"errors"
	"os"
	"time"
)

// OddError: something else stands where a file should.
type OddError struct {
	What string // Link, or what it is else
}

// Link is what a symbolic link is told as.
const Link = "a symbolic link"

const irregular = "no regular file"

// Error says what stands there.
func (e *OddError) Error() string { return "it is " + e.What }

// The reasons of Lock.
var (
	ErrLate = errors.New("another process has held the lock all the time")
	ErrDone = errors.New("the caller gave up")
)

const (
	longestNap  = 20 * time.Millisecond // between two looks at a lock that is held
	shortestNap = time.Millisecond
)

// Lock waits for the lock of an open file until limit has passed, 0 = never, or done is closed. Closing the file frees
// it.
func Lock(f *os.File, shared bool, limit time.Duration, done <-chan struct{}) error {
	var late <-chan time.Time
	for nap := shortestNap; ; nap = min(2*nap, longestNap) {
		if got, err := TryLock(f, shared); got || err != nil {
			return err
		}
		if late == nil && limit > 0 {
			timer := time.NewTimer(limit)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-done:
			return ErrDone
		case <-late:
			return ErrLate
		case <-time.After(nap):
		}
	}
}
