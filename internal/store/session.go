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
		return SessionState{Activated: s.Activated, Connected: s.Connected}
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
	}
	s.put(session, st)
	return changed || dropped
}

// SetConnected records or drops a connection and says whether that changed anything.
func (s *State) SetConnected(session, pack string, on bool) bool {
	st := s.Session(session)
	var changed bool
	st.Connected, changed = set(st.Connected, pack, on)
	s.put(session, st)
	return changed
}

// SessionsOf names the sessions in which the pack is activated or connected, sorted.
func (s *State) SessionsOf(pack string) []string {
	var ids []string
	for _, id := range append(slices.Collect(maps.Keys(s.Sessions)), DefaultSession) {
		st := s.Session(id)
		if slices.Contains(st.Activated, pack) || slices.Contains(st.Connected, pack) {
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
		s.Activated, s.Connected = st.Activated, st.Connected
		return
	}
	if len(st.Activated)+len(st.Connected)+len(st.Extra) == 0 {
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
