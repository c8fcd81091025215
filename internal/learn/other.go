//go:build !linux || !(amd64 || arm64)

package learn

import (
	"context"
	"errors"
)

// Stage becomes the program that is to be watched. This system can't watch one.
func Stage([]string) (code int, ok bool) { return 0, false }

// Watch runs a program and says what it did. This system can't.
func Watch(context.Context, Trial) (*Seen, error) {
	return nil, errors.New("a run can be watched on Linux alone")
}
