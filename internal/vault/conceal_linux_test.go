package vault_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"hcpx/internal/vault"
)

// §8.4: another process of the same user reads nothing of one that holds a secret, and could read all of it before.
func Test_8_4_NonDumpable(t *testing.T) {
	files := []string{"environ", "maps", "fd"}
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err != nil || string(scope) == "0\n" {
		files = append(files, "mem") // else nobody's is open but a child's
	}
	uid := plain()
	for _, how := range []string{"open", "conceal"} {
		c := everyonesChild(t, "hold", how)
		c.SysProcAttr = as(uid)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		run(t, c)
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		for _, file := range files {
			look := exec.Command("/bin/ls", fmt.Sprintf("/proc/%d/%s", c.Process.Pid, file))
			if file != "fd" {
				look = exec.Command("/bin/sh", "-c", fmt.Sprintf("exec 3</proc/%d/%s", c.Process.Pid, file))
			}
			look.SysProcAttr = as(uid)
			if err := look.Run(); (err == nil) != (how == "open") {
				t.Errorf("%s: %s: %v", how, file, err)
			}
		}
		_ = in.Close()
	}
}

// §8.4: whoever reads a secret has concealed itself, also when it did not think of it.
func Test_8_4_ReadingASecretConceals(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := vault.Open(home(t)).Get(t.Context(), "name"); err != nil {
		t.Fatal(err)
	}
	if now, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || now != 0 {
		t.Errorf("dumpable is %d, %v", now, err)
	}
}
