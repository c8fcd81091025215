package sandbox

import (
	"bytes"
	"os"
	"strconv"
)

// descendants are the running processes of the leader's session and those that descend from one of them,
// without the leader itself. One whose parents have died and that has its own session is not found; a
// native run says so (survivors).
func descendants(leader int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parent := map[int]int{}
	in := map[int]bool{leader: true}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// After the name, which may hold anything but ends with the last ")": state, parent, group, session.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 4 || string(fields[0]) == "Z" {
			continue
		}
		above, _ := strconv.Atoi(string(fields[1]))
		session, _ := strconv.Atoi(string(fields[3]))
		parent[pid] = above
		if session == leader {
			in[pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, above := range parent {
			if in[above] && !in[pid] {
				in[pid], grown = true, true
			}
		}
	}
	delete(in, leader)
	var list []int
	for pid := range in {
		list = append(list, pid)
	}
	return list
}
