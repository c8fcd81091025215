package store

import "syscall"

func idOf(st *syscall.Stat_t) fileID {
	return fileID{st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}
