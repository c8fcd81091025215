package sandbox

import "golang.org/x/sys/unix"

// basePaths are what every command may have beside its Spec (§10.2): system libraries and shared data, CA
// certificates, the loader and its cache, the time zone, name service order, four devices. One that this
// machine lacks is left out. Descriptors of the child itself open through /proc/self/fd without a rule, as
// far as they are pipes or lie in the jail; listing that directory would need /proc and is refused.
func basePaths() []grant {
	return []grant{
		{path: "/usr/lib", rights: rightsRead},
		{path: "/usr/lib64", rights: rightsRead},
		{path: "/usr/lib32", rights: rightsRead},
		{path: "/usr/local/lib", rights: rightsRead},
		{path: "/lib", rights: rightsRead},
		{path: "/lib64", rights: rightsRead},
		{path: "/usr/share", rights: rightsRead},
		{path: "/usr/local/share", rights: rightsRead},
		{path: "/etc/ssl/certs", rights: rightsRead},
		{path: "/etc/ssl/openssl.cnf", rights: rightsRead},
		{path: "/etc/pki/tls/certs", rights: rightsRead},
		{path: "/etc/pki/tls/openssl.cnf", rights: rightsRead},
		{path: "/etc/pki/ca-trust/extracted", rights: rightsRead},
		{path: "/etc/ca-certificates/extracted", rights: rightsRead},
		{path: "/etc/ld.so.cache", rights: rightsRead},
		{path: "/etc/localtime", rights: rightsRead},
		{path: "/etc/nsswitch.conf", rights: rightsRead},
		{path: "/lib64/ld-linux-x86-64.so.2", rights: rightsProgram},
		{path: "/lib/ld-linux-aarch64.so.1", rights: rightsProgram},
		{path: "/lib/ld-musl-x86_64.so.1", rights: rightsProgram},
		{path: "/lib/ld-musl-aarch64.so.1", rights: rightsProgram},
		{path: "/dev/null", rights: rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE},
		{path: "/dev/zero", rights: rightsRead},
		{path: "/dev/random", rights: rightsRead},
		{path: "/dev/urandom", rights: rightsRead},
	}
}

// fullPaths are what network full needs beside: names and ports are looked up from files.
func fullPaths() []grant {
	return append(hostsPaths(),
		grant{path: "/etc/resolv.conf", rights: rightsRead},
		grant{path: "/etc/hosts", rights: rightsRead},
	)
}

// hostsPaths are what network hosts needs: ports are looked up from files, names are not. Without resolv.conf every
// resolver asks this machine, where the runtime answers.
func hostsPaths() []grant {
	return []grant{
		{path: "/etc/host.conf", rights: rightsRead},
		{path: "/etc/gai.conf", rights: rightsRead},
		{path: "/etc/services", rights: rightsRead},
		{path: "/etc/protocols", rights: rightsRead},
	}
}

// present opens those of the paths that exist, each file once. The handles stay open as long as the process:
// a rule then costs one call.
func present(candidates []grant) []grant {
	found := make([]grant, 0, len(candidates))
	seen := make(map[identity]int, len(candidates))
	for _, g := range candidates {
		fd, err := unix.Open(g.path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		id, st, no := stat(fd)
		at, twice := seen[id]
		if no != 0 || twice {
			if twice {
				found[at].rights |= g.rights
			}
			_ = unix.Close(fd)
			continue
		}
		g.id, g.dir, g.fd = id, st.Mode&unix.S_IFMT == unix.S_IFDIR, fd
		if !g.dir {
			g.rights &= rightsFile
		}
		seen[id] = len(found)
		found = append(found, g)
	}
	return found
}

// closeGrants closes the handles that present opened.
func closeGrants(list []grant) {
	for _, g := range list {
		if g.fd != 0 {
			_ = unix.Close(g.fd)
		}
	}
}
