package vault

import (
	"sync"

	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
)

// Raise makes the process non-dumpable (§8.4) until the last of those who raised the shield lowers it. Call it before the mint,
// and lower after the release. lower may be called twice.
func (s *Shield) Raise() (lower func(), err *protocol.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == 0 {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return nil, protocol.Fail(protocol.InternalError, "This process cannot be made non-dumpable, so it holds no credential: "+err.Error()+".")
		}
	}
	s.held++
	return sync.OnceFunc(s.lower), nil
}

// lower makes it dumpable again. Where that fails it stays as it is, which is the safe side.
func (s *Shield) lower() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held--; s.held == 0 {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	}
}
