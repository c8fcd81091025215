package sandbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const callsPage = "../../docs/spec/10-calls.md"

// §10.2: the page that a reader has is the table that the filter is proved against.
func Test_10_2_calls_page(t *testing.T) {
	want := page()
	if *update {
		if err := os.WriteFile(callsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(callsPage)
	if err != nil {
		t.Skip("this binary runs outside its module: " + err.Error())
	}
	if string(got) != want {
		t.Error("docs/spec/10-calls.md is not the table of the filter; run with -update")
	}
}

func page() string {
	var b strings.Builder
	b.WriteString("# §10.2 System calls\n\n" +
		"What the filter of a sandboxed command answers. Made from the table that hcpx uses, which a test compares with the loaded\n" +
		"program for every number, on amd64 and arm64, at all arguments where an answer could change.\n\n" +
		"A call that stands in no table is allowed, up to number " + strconv.Itoa(lastSyscall) + ": files are Landlock's. What is above, and every x32\n" +
		"number, is ENOSYS: a later kernel's call is refused until somebody has looked at it. A call by another machine's entry (32-bit\n" +
		"programs) kills the process. `-` is a call that a machine does not have. Where hcpx decides, the call is handed to it, and it\n" +
		"does what is allowed with its own handle of the object; 32-bit numbers are compared without their high half.\n")
	rows := func(title, text string, columns []string, of verdict, cell func(r syscallRule) []string) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| call | amd64 | arm64 | %s |\n| --- | --- | --- |%s\n", title, text,
			strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
		for _, r := range sortedTable() {
			if r.verdict == of || of == allow && r.verdict != byNetwork && r.verdict != bySignals && r.verdict != byMetadata {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, shown(r.amd64), shown(r.arm64), strings.Join(cell(r), " | "))
			}
		}
	}
	words := func(v verdict) string { return declarations()[v].words }
	rows("By the network", "§10.2, Network.", []string{"none", "hosts", "full"}, byNetwork, func(r syscallRule) []string {
		return []string{words(networkVerdict("none", r.name)), words(networkVerdict("hosts", r.name)), words(networkVerdict("full", r.name))}
	})
	rows("Signals, groups and sessions", "By what keeps signals in the run (§10.5): the kernel, hcpx, or nothing, where the operator accepted that none is sent. hcpx lets\ngroups and sessions begin until the run is killed.",
		[]string{"kernel", "hcpx", "accepted"}, bySignals, func(r syscallRule) []string {
			return []string{words(signalVerdict(signalsScoped, r.name)), words(signalVerdict(signalsBrokered, r.name)), words(signalVerdict(signalsRefused, r.name))}
		})
	rows("Metadata", "By what keeps modes, owners, times and attributes outside the writable trees (§10.5): hcpx, read-only mounts, or nothing, where the\noperator accepted that none is changed.",
		[]string{"hcpx", "mounts", "accepted"}, byMetadata, func(r syscallRule) []string {
			return []string{words(metadataVerdict(metadataBrokered, r.name)), words(metadataVerdict(metadataMounts, r.name)), words(metadataVerdict(metadataRefused, r.name))}
		})
	rows("Always the same", "Whatever the network and the kernel.", []string{"answer"}, allow, func(r syscallRule) []string { return []string{words(r.verdict)} })
	return b.String()
}

func sortedTable() []syscallRule {
	return slices.SortedFunc(slices.Values(syscallTable()), func(a, b syscallRule) int { return strings.Compare(a.name, b.name) })
}

func shown(n int) string {
	if n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}
