package approval

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// bench is a book whose clock and ids the test has.
type bench struct {
	*Book
	now time.Time
	ids int
	mu  sync.Mutex
}

func newBench(shelf store.Shelf) *bench {
	b := &bench{now: start}
	b.Book = &Book{Shelf: shelf, Now: func() time.Time { return b.now }, NewID: func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ids++
		return fmt.Sprintf("id-%04d", b.ids)
	}}
	return b
}

func inMemory(t *testing.T) store.Shelf { return store.NewMemory(t.TempDir()).Shelf(Kind) }

func onDisk(t *testing.T) store.Shelf {
	return store.OpenFS(t.TempDir(), store.Options{Now: time.Now}).Shelf(Kind)
}

func request(who protocol.Principal, what string) Request {
	return Request{Principal: who, Pack: "tool", Verb: "move", Message: what, Args: []byte(`{}`), Plan: []byte(`{}`), Canonical: []byte(string(who) + what)}
}

var noRecord = func(*Approval) error { return nil }

// model is §15.2 in a few words, to hold the book against.
type model struct {
	state   State
	by      protocol.Principal
	asker   protocol.Principal
	what    string
	expires time.Time
}

func (m *model) now(t time.Time) State {
	if (m.state == Pending || m.state == Approved) && !t.Before(m.expires) {
		return Expired
	}
	return m.state
}

// §15.2: over random acts of random Principals at random times, the book and the rules in words agree.
func Test_15_2_TheBookKeepsTheRules(t *testing.T) {
	people := []protocol.Principal{"agent:a", "agent:b", "human:ada", "human:bob", "service:x"}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 15))
		b := newBench(inMemory(t))
		known := map[string]*model{}
		var ids []string
		for range 120 {
			who, what := people[rng.IntN(len(people))], fmt.Sprint(rng.IntN(3))
			id := "id-9999"
			if len(ids) > 0 {
				id = ids[rng.IntN(len(ids))]
			}
			switch m := known[id]; rng.IntN(6) {
			case 0:
				a, fresh, err := b.Ask(request(who, what), "")
				if err != nil {
					t.Fatal(err)
				}
				old := ""
				for id, m := range known {
					if s := m.now(b.now); m.asker == who && m.what == what && (s == Pending || s == Approved) {
						old = id
					}
				}
				if fresh != (old == "") || !fresh && a.ID != old {
					t.Fatalf("seed %d: asked %s, which is new %v, and open is %q", seed, a.ID, fresh, old)
				}
				if fresh {
					ids, known[a.ID] = append(ids, a.ID), &model{Pending, "", who, what, b.now.Add(Expiry)}
				}
			case 1, 2:
				to := []State{Approved, Rejected, Withdrawn}[rng.IntN(3)]
				_, err := b.Decide(id, Decision{To: to, By: who}, noRecord)
				if want := m.may(to, who, b.now); (err == nil) != want {
					t.Fatalf("seed %d: %s makes %+v %s: %v, want %v", seed, who, m, to, err, want)
				}
				if err == nil {
					m.state, m.by = to, who
				}
			case 3, 4:
				why, err := b.Spend(id, request(who, what), "run")
				if err != nil {
					t.Fatal(err)
				}
				if want := m != nil && m.now(b.now) == Approved && m.asker == who && m.what == what; (why == "") != want {
					t.Fatalf("seed %d: %s spends %+v for %s: %q, want %v", seed, who, m, what, why, want)
				}
				if why == "" {
					m.state = Spent
				}
			case 5:
				b.now = b.now.Add(time.Duration(rng.IntN(int(2 * time.Minute))))
			}
		}
	}
}

func (m *model) may(to State, who protocol.Principal, now time.Time) bool {
	if m == nil {
		return false
	}
	switch state := m.now(now); {
	case state == Pending && to == Withdrawn:
		return who == m.asker
	case state == Pending:
		return who.Human() && who != m.asker
	case state == Approved && to == Withdrawn:
		return who == m.by
	}
	return false
}

// §15.2: of two approvers, of approve and withdraw, of reject and approve, of two uses: exactly one wins, whoever looks
// afterwards sees its word.
func Test_15_2_OneOfManyWins(t *testing.T) {
	for name, shelf := range map[string]func(*testing.T) store.Shelf{"in memory": inMemory, "on disk": onDisk} {
		t.Run(name, func(t *testing.T) {
			b := newBench(shelf(t))
			for round := range 15 {
				a, _, err := b.Ask(request("agent:a", fmt.Sprint(round)), "")
				if err != nil {
					t.Fatal(err)
				}
				won := atOnce(
					func() bool { return decide(t, b, a.ID, Approved, "human:ada") },
					func() bool { return decide(t, b, a.ID, Approved, "human:bob") },
					func() bool { return decide(t, b, a.ID, Rejected, "human:cyd") },
					func() bool { return decide(t, b, a.ID, Withdrawn, "agent:a") })
				now, err := b.Find(a.ID)
				if err != nil || len(won) != 1 || now.By != []protocol.Principal{"human:ada", "human:bob", "human:cyd", "agent:a"}[won[0]] {
					t.Fatalf("won %v, stands %+v %v", won, now, err)
				}
				if now.State != Approved {
					continue
				}
				use := func() bool {
					why, err := b.Spend(a.ID, request("agent:a", fmt.Sprint(round)), "run")
					if err != nil {
						t.Error(err)
					}
					return why == ""
				}
				if won := atOnce(use, use, func() bool { return decide(t, b, a.ID, Withdrawn, now.By) }, use); len(won) != 1 {
					t.Fatalf("of uses and a withdrawal won %v", won)
				}
			}
		})
	}
}

func decide(t *testing.T, b *bench, id string, to State, by protocol.Principal) bool {
	_, err := b.Decide(id, Decision{To: to, By: by}, noRecord)
	var closed *ClosedError
	var notYours *NotYoursError
	if err != nil && !errors.As(err, &closed) && !errors.As(err, &notYours) {
		t.Error(err)
	}
	return err == nil
}

// atOnce runs all and gives the indexes of those that won.
func atOnce(all ...func() bool) []int {
	var mu sync.Mutex
	var won []int
	var ready, done sync.WaitGroup
	ready.Add(len(all))
	for i, f := range all {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			if f() {
				mu.Lock()
				defer mu.Unlock()
				won = append(won, i)
			}
		})
	}
	done.Wait()
	return won
}

// §15.2: what cannot be recorded is not decided.
func Test_15_2_WhatIsNotRecordedIsNotDecided(t *testing.T) {
	b := newBench(inMemory(t))
	a, _, err := b.Ask(request("agent:a", "x"), "")
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no space left on device")
	if _, err := b.Decide(a.ID, Decision{To: Approved, By: "human:ada"}, func(*Approval) error { return full }); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if now, err := b.Find(a.ID); err != nil || now.State != Pending {
		t.Errorf("%+v %v", now, err)
	}
}

// §15.2: asking fills no disk: old requests go, and open ones are bounded.
func Test_15_2_AskingIsBounded(t *testing.T) {
	b := newBench(inMemory(t))
	for i := range maxOpen {
		if _, _, err := b.Ask(request("agent:a", fmt.Sprint(i)), ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, who := range []protocol.Principal{"agent:a", "agent:a.label"} {
		if _, _, err := b.Ask(request(who, "one more"), ""); !errors.Is(err, ErrTooMany) {
			t.Errorf("%s: %v", who, err)
		}
	}
	b.now = start.Add(Expiry) // over, and kept still
	for i := range maxKept - maxOpen {
		a := &Approval{ID: b.NewID(), State: Withdrawn, Request: request("agent:a", fmt.Sprint("again", i)), AskedAt: b.now, ExpiresAt: b.now.Add(Expiry)}
		if err := b.put(a); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.Ask(request("agent:a", "asked and taken back"), ""); !errors.Is(err, ErrTooMany) {
		t.Errorf("%v", err)
	}
	b.now = b.now.Add(Expiry + retention)
	if _, _, err := b.Ask(request("agent:a", "later"), ""); err != nil {
		t.Errorf("%v", err)
	}
	if all, err := b.List(); err != nil || len(all) != 1 {
		t.Errorf("%d are kept, %v", len(all), err)
	}
}

// §15.2: however long they are, what one Principal asks stays below a bound.
func Test_15_2_AskingIsBoundedInBytes(t *testing.T) {
	b := newBench(inMemory(t))
	for i, fits := range []bool{true, false} {
		large := request("agent:c", fmt.Sprint("large", i))
		large.Args = []byte(`"` + strings.Repeat("x", maxBytes/2) + `"`)
		if _, _, err := b.Ask(large, ""); errors.Is(err, ErrTooMany) == fits || fits && err != nil {
			t.Errorf("the request %d: %v", i, err)
		}
	}
}

// §15.2: an approval that cannot be read confirms nothing, as one that is not there.
func Test_15_2_DamageConfirmsNothing(t *testing.T) {
	b := newBench(inMemory(t))
	a, _, err := b.Ask(request("agent:a", "x"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", `{"id":"another","state":"approved"}`, "null"} {
		if err := b.Shelf.Put(a.ID, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if why, err := b.Spend(a.ID, request("agent:a", "x"), "run"); err != nil || why != ReasonUnknown {
			t.Errorf("%q: %q %v", text, why, err)
		}
		if all, err := b.List(); err != nil || len(all) != 0 {
			t.Errorf("%q: %v %v", text, all, err)
		}
	}
	again, fresh, err := b.Ask(request("agent:a", "x"), "")
	if names, _ := b.Shelf.Names(); err != nil || !fresh || len(names) != 1 || names[0] != again.ID {
		t.Errorf("%+v %v, kept %q", again, err, names)
	}
}

// §15.5: a run that outlives its key's day is still the key's; old records go, a few at each claim.
func Test_15_5_KeysEnd(t *testing.T) {
	now := start
	shelf := store.NewMemory(t.TempDir()).Shelf(KeyKind)
	k := &Keys{Shelf: shelf, Now: func() time.Time { return now }}
	claim := func(key string) Claim {
		return Claim{Principal: "human:ada", Tenant: "local", Key: key, Canonical: []byte("x"), Run: "run-" + key}
	}
	held, _, err := k.Take(claim("long"))
	if err != nil || held == nil {
		t.Fatal(err)
	}
	for i := range 40 {
		h, _, err := k.Take(claim(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			err = h.Keep([]byte(`{}`))
		} else {
			err = h.release() // as a process that was killed
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if f, err := k.Look(claim("1")); err != nil || f.Standing != Unknown || f.Run != "run-1" {
		t.Errorf("%+v %v", f, err)
	}
	now = start.Add(KeyLife)
	if f, err := k.Look(claim("long")); err != nil || f.Standing != InProgress {
		t.Errorf("%+v %v", f, err)
	}
	for _, key := range []string{"0", "1"} {
		if f, err := k.Look(claim(key)); err != nil || f.Standing != Free {
			t.Errorf("%s: %+v %v", key, f, err)
		}
	}
	for i := range 12 {
		h, _, err := k.Take(claim(fmt.Sprint("new", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Drop(); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := shelf.Names(); err != nil || len(names) != 1 {
		t.Errorf("%d records are kept, %v", len(names), err)
	}
	if err := held.Keep([]byte(`{"ok":true}`)); err != nil {
		t.Error(err)
	}
}

// BenchmarkUse is what an approval costs beside the run that it confirms: asked, approved and spent, on disk, with others
// that are open.
func BenchmarkUse(b *testing.B) {
	for _, others := range []int{0, 100} {
		b.Run(fmt.Sprintf("open=%d", others), func(b *testing.B) {
			book := newBench(store.OpenFS(b.TempDir(), store.Options{Now: time.Now}).Shelf(Kind))
			for i := range others {
				if _, _, err := book.Ask(request("agent:b", fmt.Sprint(i)), ""); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				a, _, err := book.Ask(request("agent:a", "x"), "")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := book.Book.Decide(a.ID, Decision{To: Approved, By: "human:ada"}, noRecord); err != nil {
					b.Fatal(err)
				}
				if why, err := book.Spend(a.ID, request("agent:a", "x"), "run"); why != "" || err != nil {
					b.Fatal(why, err)
				}
				if err := book.Forget(a.ID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// §15.5: a Principal has so many keys, and answers of so many bytes; its labels count as one, others have their own. What is over
// makes room, however much of it there is, and a key that stands keeps its place.
func Test_15_5_KeysAreBounded(t *testing.T) {
	shelf, now := store.NewMemory(t.TempDir()).Shelf(KeyKind), start
	k := &Keys{Shelf: shelf, Now: func() time.Time { return now }, Most: 40, MostBytes: 100_000}
	run := func(who protocol.Principal, key string, answer int) error {
		h, found, err := k.Take(Claim{Principal: who, Tenant: "local", Key: key, Canonical: []byte("c"), Run: "r" + key})
		if err != nil {
			return err
		}
		if h == nil {
			return fmt.Errorf("%s stands: %v", key, found.Standing)
		}
		return h.Keep(make([]byte, answer))
	}
	for i := range 40 {
		who := protocol.Principal("agent:a")
		if i%2 == 0 {
			who += ".label"
		}
		if err := run(who, fmt.Sprint(i), 10); err != nil {
			t.Fatal(i, err)
		}
	}
	for _, who := range []protocol.Principal{"agent:a", "agent:a.other"} {
		if err := run(who, "more", 10); !errors.Is(err, ErrTooManyKeys) {
			t.Errorf("%s: %v", who, err)
		}
	}
	if found, err := k.Look(Claim{Principal: "agent:a", Tenant: "local", Key: "1", Canonical: []byte("c"), Run: "again"}); err != nil || found.Standing != Answered {
		t.Errorf("%+v %v", found, err)
	}
	for i := range 3 {
		if err := run("agent:b", fmt.Sprint(i), 30_000); err != nil { // an answer takes 4/3 of its bytes
			t.Fatal(err)
		}
	}
	if err := run("agent:b", "more", 1); !errors.Is(err, ErrTooManyKeys) {
		t.Errorf("bytes: %v", err)
	}
	now = now.Add(KeyLife)
	for _, who := range []protocol.Principal{"agent:a", "agent:b"} {
		if err := run(who, "more", 10); err != nil {
			t.Errorf("%s, a day later: %v", who, err)
		}
	}
	if names, err := shelf.Names(); err != nil || len(names) > 30 {
		t.Errorf("%d are left, %v", len(names), err)
	}
}
