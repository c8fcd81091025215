package places

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// user is a home with its places, and links that lead into them.
func user(t *testing.T) (string, Places) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"home/.config/acme", "home/.ssh", "xdg/gh", "xdg/acme", "srv/store/packs", "data"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"home/keys": dir + "/xdg/hcpx", "home/all": dir + "/xdg", "home/state": dir + "/srv/store", "home/shell": ".ssh"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, Places{Home: dir + "/home", Config: dir + "/xdg", Store: dir + "/srv/store"}
}

// §10.2: whatever was allowed, no read opens the store, the configuration with the audit's key (which lies
// under $XDG_CONFIG_HOME, and need not exist yet), or a credential store, by no link and by no ancestor.
func Test_10_2_ClosedReadsOfThisUser(t *testing.T) {
	dir, p := user(t)
	for _, open := range []string{"~/.config/acme", "~/.config/acme/none", dir + "/xdg/acme", dir + "/data", "~/.gitconfig"} {
		if why := p.ClosedRead(open); why != "" {
			t.Errorf("%s: %s", open, why)
		}
	}
	for _, closed := range []string{
		dir + "/xdg/hcpx", dir + "/xdg/hcpx/audit.key", dir + "/xdg", dir, dir + "/xdg/gh", dir + "/xdg/gh/hosts.yml", "~/keys", "~/all", "~/all/hcpx",
		dir + "/srv/store", dir + "/srv", dir + "/srv/store/packs", "~/state", "~/shell/id", dir + "/home", dir + "/home/.ssh", dir + "/home/.config/hcpx", "relative",
	} {
		if p.ClosedRead(closed) == "" {
			t.Errorf("%s is open", closed)
		}
	}
}

// §8.3, §10.2: the key of the vault is closed where it lies, whatever leads there, with every directory around it; its
// neighbours are not.
func Test_8_3_TheKeyOfTheVaultIsClosed(t *testing.T) {
	dir, p := user(t)
	for _, d := range []string{"keys/deep", "keys/other"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir+"/keys", dir+"/way"); err != nil {
		t.Fatal(err)
	}
	p.Key = dir + "/way/deep/vault.key"
	for _, exists := range []bool{false, true} {
		if exists {
			if err := os.WriteFile(p.Key, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, closed := range []string{"/keys/deep/vault.key", "/keys/deep", "/keys", "/way", "/way/deep/vault.key", ""} {
			if path := dir + closed; !strings.Contains(p.Closed(path), "the key of the vault") && closed != "" || p.ClosedRead(path) == "" || p.Runtime(path) == "" {
				t.Errorf("%q is open (made: %v)", closed, exists)
			}
		}
		for _, open := range []string{"/keys/other", "/keys/deep/vault.key.pub", "/data"} {
			if why := p.ClosedRead(dir + open); why != "" {
				t.Errorf("%q: %s", open, why)
			}
		}
	}
}

// §9.2, §10.2: a workspace and a read are kept from the same places: what no read opens because of this
// user's places is no workspace either.
func Test_10_2_OneAnswerForWorkspaceAndRead(t *testing.T) {
	dir, p := user(t)
	for _, path := range []string{dir + "/xdg/hcpx", dir + "/xdg", dir + "/srv", dir + "/srv/store/packs", dir + "/xdg/gh", dir + "/home/.ssh", dir + "/home/keys", dir} {
		if p.Closed(path) == "" || p.ClosedRead(path) == "" {
			t.Errorf("%s: as a workspace %q, as a read %q", path, p.Closed(path), p.ClosedRead(path))
		}
	}
	if what := p.Closed(dir + "/data"); what != "" {
		t.Error(what)
	}
	if what := (Places{}).Closed(dir); what != "" {
		t.Errorf("without places: %s", what)
	}
}
