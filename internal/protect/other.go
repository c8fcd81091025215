//go:build !unix

package protect

import (
	"context"
	"errors"
)

// Supported says whether this system can look at names the way a Guard does.
const Supported = false

// Guard guards nothing here.
type Guard struct{}

// Begin refuses: nothing here can look at names without following links.
func Begin(context.Context, Watch) (*Guard, error) {
	return nil, errors.New("protected names cannot be guarded on this system")
}

// End does nothing.
func (*Guard) End() ([]Change, error) { return nil, nil }

// Left finds nothing: no run leaves anything here.
func Left(string) ([]Leftover, error) { return nil, nil }

// Mend has nothing to put back.
func (Leftover) Mend() ([]Change, string, error) { return nil, "", nil }

// Pending finds nothing.
func Pending(Watch) error { return nil }

// Look finds nothing.
func Look(Watch) error { return nil }

// Sweep has nothing to remove.
func Sweep(string) error { return nil }
