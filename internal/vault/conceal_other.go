//go:build !linux

package vault

import "hcpx/internal/protocol"

// Conceal has nothing to do here: what a process gives away to others of its user is Linux's to be told (§8.4).
func Conceal() *protocol.Error { return nil }
