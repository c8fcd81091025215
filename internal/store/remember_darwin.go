package store

import "syscall"

func idOf(st *syscall.Stat_t) fileID {
	return fileID{uint64(st.Dev), st.Ino, st.Size, st.Mtimespec.Nano(), st.Ctimespec.Nano()}
}
