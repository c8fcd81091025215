//go:build !linux

package vault

import "hcpx/internal/protocol"

// Raise does nothing here: the shield is Linux's (§8.4).
func (s *Shield) Raise() (lower func(), err *protocol.Error) { return func() {}, nil }
