//go:build !linux

package store

import (
	"errors"
	"testing"
)

func mountSmall(string) error { return errors.New("only on Linux") }

func byNamespaceRoot(*testing.T) bool { return false }
