package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/protocol"
)

// §15.1, §10.2: a person sees the child's whole world on one page, with what every command gets folded.
func Test_15_1_PlanAsAPage(t *testing.T) {
	const plan = `{"argv":["tool","--at","a b"],"cwd":"/home/ada/w","env":["PATH","HOME"],"reads":["/p"],"writes":["/home/ada/w"],"executes":["/usr/bin/tool","/p/"],
"network":{"mode":"hosts","hosts":["api.example.org:443"]},"limits":{"wall":"1m0s","cpu":"1h0m0s","memory":8589934592,"processes":4096,"files":1024,"file_size":1073741824,"output":1000},
"isolation":"sandbox","withheld":["~/.toolrc"],"private":{"reads":["<private>/bin"],"writes":["<private>/home","<private>/tmp"],"executes":[]},
"base":{"reads":["/usr/lib","/usr/share","/etc/ssl/certs","/lib64"],"writes":["/dev/null"],"executes":["/lib64/ld-linux-x86-64.so.2"],"devices":["/dev/null","/dev/zero"]},
"backend":"landlock","degraded":["memory","processes"],"confirm":{"needed":false,"given":false,"by":null},"grant":["Allowed by grant 1."]}`
	const want = `tool/go would run:
  tool --at 'a b'

in           /home/ada/w
reads        /p
writes       /home/ada/w
executes     /usr/bin/tool /p/
withheld     ~/.toolrc
private      <private>/home <private>/tmp <private>/bin (read only)
also reads   /usr (2) /etc (1) /lib64 (1)
also runs    /lib64/ld-linux-x86-64.so.2
devices      /dev/null /dev/zero
environment  PATH HOME
network      hosts api.example.org:443
isolation    sandbox, by landlock
time         1m0s
limits       cpu 1h0m0s, memory 8 GiB, processes 4096, open files 1024, one file 1 GiB, output 1000 bytes
weaker here  memory processes
confirm      not needed
granted      Allowed by grant 1.

next: hcpx exec tool go …
`
	var b bytes.Buffer
	showPlan(&page{out: &b}, protocol.Result{OK: true, PackID: "tool", VerbKey: "go", Result: json.RawMessage(plan)})
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

// §10.3, §10.2: of a run outside the sandbox a person reads what is not held as that, and no limit that nothing holds;
// and of a protected workspace no more than is kept.
func Test_10_3_PlanClaimsNothing(t *testing.T) {
	const native = `{"argv":["tool"],"cwd":"/w","env":[],"reads":["/"],"writes":["/"],"executes":["/"],"network":{"mode":"full","hosts":[]},
"limits":{"wall":"1m0s","output":1000,"note":"Outside the sandbox only time and output are limited."},"isolation":"native-local",
"protected":{"guarded":["git: its hooks","editors"],"may_change":MAY},"backend":"native","degraded":["files","memory"],"confirm":{"needed":false},"grant":[]}`
	for may, want := range map[string]string{
		`[]`:           "a closed list of names in the root and git's directories is put back if it changes them: git: its hooks; editors. Nothing else is: a script that you run later, or a repository below the root, is as the command leaves it\n",
		`["Makefile"]`: "it may change by design: Makefile; all others of a closed list are put back: git: its hooks; editors. Nothing else is: a script that you run later, or a repository below the root, is as the command leaves it\n",
	} {
		var b bytes.Buffer
		showPlan(&page{out: &b}, protocol.Result{OK: true, PackID: "tool", VerbKey: "go", Result: json.RawMessage(strings.Replace(native, "MAY", may, 1))})
		for _, line := range []string{
			"isolation  none: it runs outside the sandbox, with all your rights (native-local)\n", "limits     output 1000 bytes\n",
			"of limits  Outside the sandbox only time and output are limited.\n", "not held   files memory\n", "protected  " + want,
		} {
			if !strings.Contains(b.String(), line) {
				t.Errorf("no %q in\n%s", line, b.String())
			}
		}
	}
}
