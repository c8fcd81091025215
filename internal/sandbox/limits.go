package sandbox

import "time"

// The limits that a Spec may leave open (§10.4). docs/decisions/0012 says why these.
const (
	defaultWall      = time.Minute
	defaultGrace     = 2 * time.Second
	defaultFiles     = 1024
	defaultFileSize  = 1 << 30
	defaultOutput    = 8 << 20
	defaultMemory    = 8 << 30
	defaultProcesses = 4096
)

// filled fills in what the Spec leaves open. CPU time alone may be without a limit.
func (l Limits) filled() Limits {
	fill(&l.Wall, defaultWall)
	fill(&l.Grace, defaultGrace)
	fill(&l.Files, defaultFiles)
	fill(&l.FileSize, defaultFileSize)
	fill(&l.Output, defaultOutput)
	fill(&l.Memory, defaultMemory)
	fill(&l.Processes, defaultProcesses)
	return l
}

func fill[T comparable](field *T, preset T) {
	var zero T
	if *field == zero {
		*field = preset
	}
}

// LimitsNote is what a plan says beside the limits of a run (§10.4).
func LimitsNote(native bool) string {
	if native {
		return "Outside the sandbox only time and output are limited."
	}
	return "CPU time, open files and file size hold for each process, from its first instruction. Memory and processes hold for the whole run, but only one that lives longer than " + firstLook.String() + " is looked at, about four times a second, and put into a cgroup where one is delegated; what comes between two looks is not limited."
}

// The watch over memory and processes (§10.4): when it begins, and its longest pause.
const (
	firstLook    = 25 * time.Millisecond
	longestPause = 250 * time.Millisecond
	many         = 16 // the part of the processes that it may have from which a run is looked at as often as can be
)

// How memory and processes are watched, in a Report.
const (
	watchedSampled = "sampled"
	watchedCgroup  = "cgroup"
)

// watched are the limits that are held by looking now and then; every report names them as degraded.
func watched() []string { return []string{"memory", "processes"} }

// limitRows are the limits as doctor shows them. groups is the cgroup in which a run gets one of its own, "" = none.
func limitRows(groups string) []Rule {
	rows := []Rule{
		{Name: "cpu", Mechanism: "RLIMIT_CPU, of each process, set before it begins", State: "enforced"},
		{Name: "open-files", Mechanism: "RLIMIT_NOFILE, of each process, set before it begins", State: "enforced"},
		{Name: "file-size", Mechanism: "RLIMIT_FSIZE, of each process, set before it begins", State: "enforced"},
		{Name: "core-dumps", Mechanism: "RLIMIT_CORE 1: no file is written and no program started for one", State: "enforced"},
	}
	how := "the processes of a run are counted, and killed together when they are over"
	why := "Sampled: a run is looked at from " + firstLook.String() + " on, then at growing pauses up to " + longestPause.String() + "; what comes and goes between two looks is not seen."
	if groups == "" {
		why += " No cgroup that limits memory and processes is delegated to hcpx here."
	} else {
		how += "; a cgroup of its own below " + groups
		why += " What a run took before it was moved into its cgroup is not charged to that."
	}
	for _, name := range watched() {
		rows = append(rows, Rule{Name: name, Mechanism: how, State: "degraded", Detail: why})
	}
	return rows
}

// notNative are the limits that a run outside the sandbox does not have (§10.3).
func notNative() []string {
	var names []string
	for _, row := range limitRows("") {
		names = append(names, row.Name)
	}
	return names
}
