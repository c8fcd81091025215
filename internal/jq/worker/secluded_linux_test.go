//go:build !race

package worker

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// §3.5: a worker has three streams, no environment, and no system call by which it could reach anything else, whatever
// runs in it.
func Test_3_5_TheWorkerIsConfined(t *testing.T) {
	open, err := os.Open("/dev/null") // not to be had there
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := unix.FcntlInt(open.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET", "hunter2")
	c := client(t)
	for what, want := range map[string]string{
		"open": "operation not permitted", "create": "operation not permitted", "connect": "operation not permitted", "exec": "operation not permitted",
		"fork": "operation not permitted", "signal": "operation not permitted", "signal a thread": "operation not permitted",
		"trace": "operation not permitted", "limit": "operation not permitted", "environment": "[]",
	} {
		if got, err := eval(t, c, probe+what); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %s %v", what, got, err)
		}
	}
	// Go itself may have opened what it waits with.
	if got, err := eval(t, client(t), probe+"descriptors"); err != nil || !strings.HasPrefix(got, `"[0 1 2`) || strings.Count(got, " ") > 4 {
		t.Errorf("descriptors: %s %v", got, err)
	}
}
