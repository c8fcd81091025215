package wrap

import (
	"strings"
	"testing"
	"time"

	"hcpx/internal/sandbox"
)

// §10.4: what a limit ended names the limit and who set it.
func Test_10_4_ALimitIsNamedWithItsSetting(t *testing.T) {
	limits := sandbox.Limits{Wall: 30 * time.Second, CPU: time.Minute, FileSize: 1 << 30, Output: 8 << 20, Files: 1024, Memory: 8 << 30, Processes: 4096}
	short := limits
	short.Wall = 5 * time.Second
	odd := limits
	odd.Output = 1000
	for _, c := range []struct {
		outcome sandbox.Outcome
		limits  sandbox.Limits
		want    string
	}{
		{sandbox.Outcome{TimedOut: true}, limits, "30s (the command's timeout)"},
		{sandbox.Outcome{TimedOut: true}, short, "5s (setting limits.wall_max)"},
		{sandbox.Outcome{Overflow: true}, limits, "8 MiB (setting limits.output)"},
		{sandbox.Outcome{Overflow: true}, odd, "1000 bytes (setting limits.output)"},
		{sandbox.Outcome{Limit: "cpu"}, limits, "1m0s (setting limits.cpu)"},
		{sandbox.Outcome{Limit: "file_size"}, limits, "1 GiB (setting limits.file_size)"},
		{sandbox.Outcome{Limit: "file_size", Exit: 1}, limits, "failed with exit code 1 at its limit of the size of a file"},
		{sandbox.Outcome{Limit: "open_files", Exit: 1}, limits, "failed with exit code 1 at its limit of open files, 1024 of each process (setting limits.files)"},
		{sandbox.Outcome{Limit: "memory", Signal: "SIGKILL"}, limits, "was ended by its limit of memory, 8 GiB of all processes together (setting limits.memory)"},
		{sandbox.Outcome{Limit: "processes", Signal: "SIGKILL"}, limits, "was ended by its limit of processes, 4096 with their threads (setting limits.processes)"},
	} {
		cmd := mustCompile(t, `"argv":[]`).(*command)
		cmd.timeout = 30 * time.Second
		if err := cmd.failure(&c.outcome, c.limits); err == nil || !strings.Contains(err.Message, c.want) {
			t.Errorf("want %q: %v", c.want, err)
		}
	}
}
