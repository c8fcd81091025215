//go:build unix

package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hcpx/internal/approval"
	"hcpx/internal/audit"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

var kills = flag.Int("kills", 40, "how many processes are killed while they ask, approve, spend and claim")

const victimEnv = "PIPELINE_VICTIM"

// TestMain lets the test binary stand for another process at the same store.
func TestMain(m *testing.M) {
	if os.Getenv(victimEnv) != "" {
		victim(os.Getenv(victimEnv))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// onDisk is a rig over a store and an audit on disk, whose commands leave one line in the file "ran".
func onDisk(t testing.TB, home string) *rig {
	st := store.OpenFS(filepath.Join(home, "store"), store.Options{Now: time.Now})
	log := audit.Open(audit.Config{Dir: filepath.Join(home, "store", "audit"), KeyPath: filepath.Join(home, "audit.key"), Now: time.Now})
	r := rigOver(t, st)
	r.p.Audit, r.log = log, nil
	r.now = time.Time{} // the real one
	r.p.NewID = func() string { return fmt.Sprintf("%d-%016x", time.Now().UnixNano(), rand.Uint64()) }
	r.p.approvals.NewID = r.p.NewID
	r.s.Dir = home
	r.box.during = func() {
		spec := r.box.prepared[len(r.box.prepared)-1]
		f, err := os.OpenFile(filepath.Join(home, "ran"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(f, spec.Args[len(spec.Args)-1])
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			panic(err)
		}
	}
	return r
}

func moveTo(to string) string {
	return `{"pack_id":"tool","verb_key":"move","args":{"to":"` + to + `"}}`
}

// victim asks, approves and uses one request after another, each named by the round, and runs others under keys, until it
// is killed. Two of them do the same at once.
func victim(spec string) {
	home, round, _ := strings.Cut(spec, "|")
	r := onDisk(nil, home)
	ctx := context.Background()
	agent, person := r.s, r.s
	agent.Principal = "agent:claude-code"
	for n := 0; ; n++ {
		to := fmt.Sprintf("%s-%d", round, n)
		if id, _ := r.p.Exec(ctx, agent, []byte(moveTo("a"+to))).Error.Details["approval_id"].(string); id != "" {
			_, _ = r.p.approvals.Decide(id, approval.Decision{To: approval.Approved, By: "human:ada"}, func(*approval.Approval) error { return nil })
			use := with(moveTo("a"+to), id)
			if n%2 == 1 { // else the approval alone keeps it to one run
				use = keyed(use, "a"+to)
			}
			r.p.Exec(ctx, agent, []byte(use))
		}
		confirmed := strings.TrimSuffix(moveTo("k"+to), "}") + `,"confirm":true}`
		r.p.Exec(ctx, person, []byte(keyed(confirmed, to)))
	}
}

// §15.2, §15.5: whenever a process is killed, no approval is spent twice, no key runs twice, and a run whose outcome nobody
// knows says so for as long as its key stands.
func Test_15_2_KilledAtAnyMoment(t *testing.T) {
	home := t.TempDir()
	r := onDisk(t, home)
	r.install("tool", toolManifest, toolPolicy)
	r.activate("tool", true)
	r.grants(grant.Grant{Principal: "agent:*", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for round := range (*kills + 1) / 2 {
		var both []*exec.Cmd
		for range 2 {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", victimEnv, home, round))
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			both = append(both, cmd)
		}
		time.Sleep(time.Duration(30+rand.IntN(90)) * time.Millisecond) // long enough to begin, at a moment nobody chose
		for _, cmd := range both {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("a victim ended by itself: %v", err)
			}
		}
	}
	ran := ranOnce(t, home)
	spentOnce(t, r, home, ran)
	repeatsRunNothing(t, r, ran)
	ranOnce(t, home)
	report, err := audit.Verify(audit.Config{Dir: filepath.Join(home, "store", "audit"), KeyPath: filepath.Join(home, "audit.key"), Now: time.Now})
	if err != nil || !report.OK {
		t.Errorf("%+v %v", report.Problems, err)
	}
	t.Logf("%d kills, %d runs, %d cut off", *kills, len(ran), len(report.Interrupted))
}

// ranOnce reads how often each command ran, and demands that none with a key did twice.
func ranOnce(t *testing.T, home string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, to := range strings.Fields(string(text)) {
		if ran[to]++; ran[to] > 1 && to[0] == 'k' {
			t.Errorf("%s ran twice", to)
		}
	}
	return ran
}

// spentOnce holds approvals, audit and runs against each other: one intent for each spent approval at most, none for another,
// nothing ran without one, and no command more often than approvals for it were spent.
func spentOnce(t *testing.T, r *rig, home string, ran map[string]int) {
	t.Helper()
	intents := map[string]int{}
	recorded := map[string]bool{}
	if err := audit.Read(audit.Config{Dir: filepath.Join(home, "store", "audit"), KeyPath: filepath.Join(home, "audit.key"), Now: time.Now}, 0, func(e audit.Entry, _ []byte) error {
		if e.Kind != audit.Intent {
			return nil
		}
		var args struct{ To string }
		var detail struct {
			ID string `json:"approval_id"`
		}
		_ = json.Unmarshal(e.Args, &args)
		recorded[args.To] = true
		if json.Unmarshal(e.Detail, &detail) == nil && detail.ID != "" {
			intents[detail.ID]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	all, err := r.p.approvals.List()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d approvals, %v", len(all), err)
	}
	spent := map[string]int{}
	for _, a := range all {
		if a.State == approval.Spent {
			spent[string(a.Args)]++
		}
		if n := intents[a.ID]; n > 1 || n == 1 && a.State != approval.Spent {
			t.Errorf("the approval %s is %s and has %d intents", a.ID, a.State, n)
		}
	}
	for to, n := range ran {
		if to[0] == 'a' && n > spent[`{"to":"`+to+`"}`] {
			t.Errorf("%s ran %d times by %d approvals", to, n, spent[`{"to":"`+to+`"}`])
		}
		if !recorded[to] {
			t.Errorf("%s ran without an intent", to)
		}
	}
}

// repeatsRunNothing repeats every keyed run: its answer is the recorded one, or that nobody knows.
func repeatsRunNothing(t *testing.T, r *rig, ran map[string]int) {
	t.Helper()
	unknown := 0
	for to := range ran {
		if to[0] != 'k' {
			continue
		}
		res := r.exec(keyed(strings.TrimSuffix(moveTo(to), "}")+`,"confirm":true}`, to[1:]))
		switch {
		case res.OK && len(res.Notes) == 1:
		case !res.OK && res.Error.Code == protocol.IdempotencyUnknown:
			unknown++
		default:
			t.Errorf("a repeat of %s: %s", to, res.AppendJSON(nil))
		}
	}
	t.Logf("%d keys of cut off runs", unknown)
}
