package mcp

import (
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"hcpx/internal/projection"
	"hcpx/internal/protocol"
)

// watcher knows what was listed to whom, so that a client is told once that differs (§12.2).
type watcher struct {
	mu    sync.Mutex
	pulse string
	at    time.Time
	lists map[protocol.Principal][sha256.Size]byte
}

// staleAfter is when the lists are made again although the store stands still: a grant may have expired.
const staleAfter = time.Minute

// saw keeps what a Principal was shown.
func (w *watcher) saw(s protocol.Session, packs []projection.Pack) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lists == nil {
		w.lists = map[protocol.Principal][sha256.Size]byte{}
	}
	if _, known := w.lists[s.Principal]; known || len(w.lists) < maxQuestions { // names that clients give themselves
		w.lists[s.Principal] = sumOf(packs)
	}
}

func sumOf(packs []projection.Pack) [sha256.Size]byte {
	h := sha256.New()
	for _, p := range packs {
		h.Write([]byte(p.ID + "\x00" + p.Version + "\x00"))
		h.Write(projection.Skill(p))
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// watched looks at the store from time to time, two stats a look, until the server ends.
func (v *server) watched() {
	every := v.Every
	if every == 0 {
		every = watchEvery
	}
	v.Life.Store.SweepResults()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-v.ctx.Done():
			return
		case <-tick.C:
			v.look()
		}
	}
}

// look tells the clients when what was listed to one of them is no longer what it would be (§12.2.6).
func (v *server) look() {
	if !v.watch.stale(v.Pulse(), v.Now()) {
		return
	}
	changed := false
	for p, old := range v.watch.shown() {
		s := v.Session
		s.Principal = p
		packs, err := v.Life.Offered(s, v.Packs)
		if err != nil {
			continue
		}
		if sumOf(packs) != old {
			changed = true
			v.watch.saw(s, packs)
		}
	}
	if changed {
		v.tellChanged()
	}
}

func (w *watcher) stale(pulse string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lists) == 0 || pulse == w.pulse && now.Sub(w.at) < staleAfter {
		return false
	}
	w.pulse, w.at = pulse, now
	return true
}

func (w *watcher) shown() map[protocol.Principal][sha256.Size]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.lists)
}

// tellChanged has the SDK send list_changed to whoever is to have it. It sends it where something is added, and adding
// what is there already changes nothing else.
func (v *server) tellChanged() {
	if v.Shape == projection.Commands {
		v.mcp.AddTool(tool(projection.Tools(nil, projection.Commands)[0]), v.readSkill)
	}
	v.mcp.AddResourceTemplate(skillTemplate(), v.readResource)
}
