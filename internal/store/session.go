package store

import (
	"maps"
	"slices"

	"hcpx/internal/protocol"
)

// DefaultSession is the session whose lists stand at the top level of state.json (§9.3).
const DefaultSession = protocol.DefaultSession

// Session is the activation and connection of a session; empty for one that nothing is known of.
func (s *State) Session(id string) SessionState {
	if id == DefaultSession || id == "" {
		return SessionState{Activated: s.Activated, Connected: s.Connected, Bindings: s.Bindings}
	}
	return s.Sessions[id]
}

// IsActivated says whether the pack is activated in the session (§11.1).
func (s *State) IsActivated(session, pack string) bool {
	return slices.Contains(s.Session(session).Activated, pack)
}

// IsConnected says whether the pack's binding was established in the session (§8.5). Nothing is
// connected that is not activated.
func (s *State) IsConnected(session, pack string) bool {
	return slices.Contains(s.Session(session).Connected, pack) && s.IsActivated(session, pack)
}

// SetActivated activates or deactivates and says whether that changed anything. Deactivating also drops
// the connection (HCP-11.1-4).
func (s *State) SetActivated(session, pack string, on bool) bool {
	st := s.Session(session)
	var changed, dropped bool
	st.Activated, changed = set(st.Activated, pack, on)
	if !on {
		st.Connected, dropped = set(st.Connected, pack, false)
		_, parked := st.Bindings[pack]
		dropped = dropped || parked
		st.Bindings = without(st.Bindings, pack)
	}
	s.put(session, st)
	return changed || dropped
}

// SetConnected records or drops a connection and says whether that changed anything.
func (s *State) SetConnected(session, pack string, on bool) bool {
	st := s.Session(session)
	var changed bool
	st.Connected, changed = set(st.Connected, pack, on)
	if !on {
		_, parked := st.Bindings[pack]
		changed = changed || parked
		st.Bindings = without(st.Bindings, pack)
	}
	s.put(session, st)
	return changed
}

// Bound is what connect recorded of the pack's binding in the session (§8.5); false when it has no source, or was
// connected by a runtime that recorded nothing.
func (s *State) Bound(session, pack string) (Bound, bool) {
	b, ok := s.Session(session).Bindings[pack]
	return b, ok && s.IsConnected(session, pack)
}

// Bind records a connection and whose binding it uses, and says whether that changed anything.
func (s *State) Bind(session, pack string, b Bound) bool {
	changed := s.SetConnected(session, pack, true)
	st := s.Session(session)
	changed = changed || st.Bindings[pack] != b
	s.Park(session, pack, b)
	return changed
}

// Park notes whose binding a pack had that is no longer connected: what is kept for it stays, and whoever connected it
// finds it again.
func (s *State) Park(session, pack string, b Bound) {
	st := s.Session(session)
	st.Bindings = without(st.Bindings, pack)
	if st.Bindings == nil {
		st.Bindings = map[string]Bound{}
	}
	st.Bindings[pack] = b
	s.put(session, st)
}

// KeepSecret notes that something is, or soon may be, kept under the name; DropSecret that nothing is any more.
func (s *State) KeepSecret(name string) { s.Secrets, _ = set(s.Secrets, name, true) }

// DropSecret is the end of KeepSecret.
func (s *State) DropSecret(name string) { s.Secrets, _ = set(s.Secrets, name, false) }

// UsersOf names the bindings that need what is kept under the name, parked ones too, as session/pack, sorted.
func (s *State) UsersOf(secret string) []string {
	var users []string
	for _, id := range append(slices.Collect(maps.Keys(s.Sessions)), DefaultSession) {
		for pack, b := range s.Session(id).Bindings {
			if b.Secret == secret {
				users = append(users, id+"/"+pack)
			}
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// Orphans are the kept secrets that no connection uses, sorted.
func (s *State) Orphans() []string {
	var left []string
	for _, name := range s.Secrets {
		if len(s.UsersOf(name)) == 0 {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

// without is a copy of the bindings that lacks one; nil when none is left.
func without(bindings map[string]Bound, pack string) map[string]Bound {
	left := maps.Clone(bindings)
	delete(left, pack)
	if len(left) == 0 {
		return nil
	}
	return left
}

// SessionsOf names the sessions in which the pack is activated, connected or bound, sorted.
func (s *State) SessionsOf(pack string) []string {
	var ids []string
	for _, id := range append(slices.Collect(maps.Keys(s.Sessions)), DefaultSession) {
		st := s.Session(id)
		if _, bound := st.Bindings[pack]; bound || slices.Contains(st.Activated, pack) || slices.Contains(st.Connected, pack) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// DropPack deactivates and disconnects the pack in every session and names those that it touched, as
// uninstall does (§11.1).
func (s *State) DropPack(pack string) []string {
	ids := s.SessionsOf(pack)
	for _, id := range ids {
		s.SetActivated(id, pack, false)
	}
	return ids
}

func (s *State) put(id string, st SessionState) {
	if id == DefaultSession || id == "" {
		s.Activated, s.Connected, s.Bindings = st.Activated, st.Connected, st.Bindings
		return
	}
	if len(st.Activated)+len(st.Connected)+len(st.Bindings)+len(st.Extra) == 0 {
		delete(s.Sessions, id)
		return
	}
	if s.Sessions == nil {
		s.Sessions = map[string]SessionState{}
	}
	s.Sessions[id] = st
}

// set returns a list with or without v, and whether it differs; the old one is left as it was.
func set(list []string, v string, on bool) ([]string, bool) {
	has := slices.Contains(list, v)
	switch {
	case on == has:
		return list, false
	case on:
		return append(slices.Clip(list), v), true
	default:
		return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return x == v }), true
	}
}
