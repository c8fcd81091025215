package sandbox

// Why a limit is not enforced (§10.4).
const (
	noCgroup   = "No cgroup is used; the limit is not enforced."
	afterStart = "Applied just after the start: what the command does in its first moments, and a process that it starts within them, runs under the limits of the runtime."
)

// LimitsNote is what a plan says beside the limits of a run (§10.4).
func LimitsNote(native bool) string {
	if native {
		return "Outside the sandbox only time and output are limited."
	}
	return "CPU time, open files and file size are applied just after the start, so the command's first moments, and a process started within them, are not limited; memory and number of processes are not limited at all."
}

// limitRows are the limits that no backend here holds from the first instruction, or at all; every report
// names them.
func limitRows() []Rule {
	return []Rule{
		{Name: "cpu", Mechanism: "RLIMIT_CPU, of each process", State: "degraded", Detail: afterStart},
		{Name: "open-files", Mechanism: "RLIMIT_NOFILE, of each process", State: "degraded", Detail: afterStart},
		{Name: "file-size", Mechanism: "RLIMIT_FSIZE, of each process", State: "degraded", Detail: afterStart},
		{Name: "core-dumps", Mechanism: "RLIMIT_CORE 0, of each process", State: "degraded", Detail: afterStart},
		{Name: "memory", Mechanism: "a delegated cgroup", State: "missing", Detail: noCgroup},
		{Name: "processes", Mechanism: "a delegated cgroup", State: "missing", Detail: noCgroup},
	}
}

// notEnforced are the names of those limits.
func notEnforced() []string {
	var names []string
	for _, row := range limitRows() {
		names = append(names, row.Name)
	}
	return names
}
