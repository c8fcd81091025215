package examples_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func newTransit(t *testing.T) *tool {
	return newTool(t, "transit", "transit", "awk", "ln", "mkdir", "rm")
}
func newLedger(t *testing.T) *tool { return newTool(t, "ledger", "ledger", "ln", "mkdir", "rm") }

func TestTransitPlansTheEarliestArrival(t *testing.T) {
	x := newTransit(t)
	for _, c := range []struct{ args, depart, arrive, routes string }{
		{"--from=Harbour --to=Airport --time=08:00", "08:00", "08:35", "1 12"},
		{"--from=HBR --to=air --time=08:01", "08:30", "09:05", "1 12"},
		{"--from=Central --to=Stadium --time=08:16", "08:16", "08:24", "12"},
		{"--from=LGT --to=AIR --time=06:00 --date=2026-12-25", "07:35", "09:35", "F 1 12"},     // a holiday runs as Sunday
		{"--from=Harbour --to=Airport --time=24:00 --date=2026-06-05", "24:30", "24:56", "N1"}, // the night after
	} {
		v := x.json(append([]string{"plan"}, strings.Fields(c.args)...)...)
		var routes []string
		for _, leg := range v["legs"].([]any) {
			routes = append(routes, leg.(map[string]any)["route"].(string))
		}
		if v["depart"] != c.depart || v["arrive"] != c.arrive || strings.Join(routes, " ") != c.routes {
			t.Errorf("%s: %v to %v by %v", c.args, v["depart"], v["arrive"], routes)
		}
	}
	if v := x.json("plan", "--from=Harbour", "--to=Airport", "--time=29:00"); v["depart"] != nil || len(v["legs"].([]any)) != 0 {
		t.Errorf("nothing runs any more: %v", v)
	}
	v := x.json("plan", "--from=harbour", "--to=Bridge Street, East")
	if name := v["to"].(map[string]any)["name"]; name != "Bridge Street, East" {
		t.Errorf("quoted in the timetable: %v", name)
	}
	x.fails(`No stop is called "Atlantis".`, "plan", "--from=Harbour", "--to=Atlantis")
	x.fails(`No stop is called "$(id)".`, "departures", "--stop=$(id)")
	if left := files(t, x.dir); len(left) > 0 {
		t.Errorf("reading wrote %v", left)
	}
}

func TestTransitNotesAreKeptByteForByte(t *testing.T) {
	x := newTransit(t)
	texts := []string{
		"plain", "two\nlines\n\n", "tab\tquote\" back\\slash \\n $(id) `id` %s %d", "Zürich 日本 🚋", " lead and trail ",
		"\x01\x1f\x7f", strings.Repeat("long ", 4000),
	}
	for i, text := range texts {
		v := x.json("notes-add", "--text="+text)
		if v["text"] != text || fmt.Sprint(v["id"]) != fmt.Sprint(i+1) {
			t.Errorf("note %d came back as %q", i+1, v)
		}
	}
	for i, n := range x.json("notes-list")["notes"].([]any) {
		if got := n.(map[string]any)["text"]; got != texts[i] {
			t.Errorf("listed %q; want %q", got, texts[i])
		}
	}
}

func TestTransitNotesAddedAtTheSameTimeAreAllKept(t *testing.T) {
	x := newTransit(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { x.run("notes-add", fmt.Sprintf("--text=note %d", i)) })
	}
	all.Wait()
	ids := map[string]bool{}
	for _, n := range x.json("notes-list")["notes"].([]any) {
		ids[fmt.Sprint(n.(map[string]any)["id"])] = true
	}
	if len(ids) != 20 {
		t.Errorf("%d of 20 notes are there", len(ids))
	}
}

func balances(t *testing.T, x *tool) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, b := range x.json("balance")["balances"].([]any) {
		m := b.(map[string]any)
		all[m["account"].(string)+" "+m["currency"].(string)] = fmt.Sprint(m["balance"])
	}
	return all
}

func TestLedgerReadingWritesNothing(t *testing.T) {
	x := newLedger(t)
	if got := balances(t, x)["checking EUR"]; got != "1000.00" {
		t.Errorf("checking opens with %s", got)
	}
	x.fails("There is no account nowhere", "balance", "--account=nowhere")
	if left := files(t, x.dir); len(left) > 0 {
		t.Errorf("reading wrote %v", left)
	}
}

func TestLedgerKeepsAmountsExactly(t *testing.T) {
	x := newLedger(t)
	for _, amount := range []string{"0.1", "0.20", "0.07", "12", "100.09"} {
		x.json("transfer", "--from=checking", "--to=grocer", "--amount="+amount, "--currency=EUR")
	}
	if got := balances(t, x); got["grocer EUR"] != "112.46" || got["checking EUR"] != "887.54" {
		t.Errorf("got %v", got)
	}
	for amount, words := range map[string]string{
		"0": "above zero", "0.00": "above zero", "-1": "Not an amount", "1e3": "Not an amount", "": "Not an amount",
		"1.234": "two decimal places", "9999999999999": "million million", "887.55": "less than 887.55", "$(id)": "Not an amount",
	} {
		x.fails(words, "transfer", "--from=checking", "--to=grocer", "--amount="+amount, "--currency=EUR")
	}
	x.fails("two different", "transfer", "--from=grocer", "--to=grocer", "--amount=1", "--currency=EUR")
	x.fails("letters only", "transfer", "--from=checking", "--to=a;id", "--amount=1", "--currency=EUR")
	x.fails("letters only", "transfer", "--from=checking", "--to=grocer", "--amount=1", "--currency=E$")
	if got := x.json("balance")["entries"]; fmt.Sprint(got) != "5" {
		t.Errorf("refused transfers left %v entries", got)
	}
}

func TestLedgerTransfersAtTheSameTimeNeverOverdraw(t *testing.T) {
	x := newLedger(t)
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() { x.run("transfer", "--from=checking", "--to=savings", "--amount=99.99", "--currency=EUR") })
	}
	all.Wait()
	got := balances(t, x)
	if got["checking EUR"] != "0.10" || got["savings EUR"] != "3499.90" {
		t.Errorf("ten of thirty fit; got %v", got)
	}
	if slices.ContainsFunc(files(t, x.dir), func(f string) bool { return strings.Contains(f, ".draft") }) {
		t.Error("a draft is left")
	}
}
