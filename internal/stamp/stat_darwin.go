package stamp

import (
	"io/fs"
	"syscall"

	"hcpx/internal/protocol"
)

// exactTimes: the change time is known, to the nanosecond.
const exactTimes = true

func statOf(info fs.FileInfo) protocol.FileStamp {
	s := protocol.FileStamp{Size: info.Size(), Mode: uint32(info.Mode()), MtimeNS: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Dev, s.Ino, s.CtimeNS = uint64(st.Dev), st.Ino, st.Ctimespec.Nano()
	}
	return s
}
