package store

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func mountSmall(dir string) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=700")
}

// byNamespaceRoot runs the test again as root of a user namespace when this one may not mount.
func byNamespaceRoot(t *testing.T) bool {
	t.Helper()
	const mark = "STORE_NAMESPACE"
	if os.Geteuid() == 0 || os.Getenv(mark) != "" {
		return false
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), mark+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case strings.Contains(string(out), "--- PASS: "+t.Name()):
		return true
	case strings.Contains(string(out), "--- FAIL"):
		t.Errorf("in a user namespace: %v\n%s", err, out)
		return true
	}
	return false // there are no user namespaces for this user
}
