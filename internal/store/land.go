package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hcpx/internal/protocol"
)

var errNoLand = errors.New("the land has no directory in the store")

// landDir is the directory of a personal or brain land (§9.2): lands, tenants, owners and packs never
// share one. A part that could leave its place gives "".
func landDir(home string, k LandKey) string {
	owner := k.Project
	if k.Land == protocol.Personal {
		if !k.Principal.Valid() {
			return ""
		}
		owner = strings.Replace(string(k.Principal), ":", "~", 1)
	}
	if k.Land != protocol.Personal && k.Land != protocol.Brain {
		return ""
	}
	for _, part := range []string{k.Tenant, owner, k.Pack} {
		if !plainName(part) {
			return ""
		}
	}
	return filepath.Join(home, "data", k.Tenant, string(k.Land), owner, k.Pack)
}

// plainName says whether s is one path element that is not hidden.
func plainName(s string) bool {
	return s != "" && s[0] != '.' && !strings.ContainsAny(s, "/\\\x00")
}

// landsOf are the directories data/*/*/*/<pack> that exist.
func landsOf(home, pack string) ([]string, error) {
	if !plainName(pack) {
		return nil, nil
	}
	level := []string{filepath.Join(home, "data")}
	for range 3 { // tenant, land, owner
		var next []string
		for _, dir := range level {
			entries, err := os.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, e := range entries {
				if e.IsDir() {
					next = append(next, filepath.Join(dir, e.Name()))
				}
			}
		}
		level = next
	}
	var found []string
	for _, dir := range level {
		if dir = filepath.Join(dir, pack); exists(dir) {
			found = append(found, dir)
		}
	}
	return found, nil
}

func hasLand(home, pack string) (bool, error) {
	found, err := landsOf(home, pack)
	return len(found) > 0, err
}

func purgeLand(home, pack string) error {
	found, err := landsOf(home, pack)
	if err != nil {
		return err
	}
	for _, dir := range found {
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	return nil
}
