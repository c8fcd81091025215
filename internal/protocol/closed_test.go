package protocol

import "testing"

func Test_10_2_Reads(t *testing.T) {
	for _, open := range []string{
		"~/.gitconfig", "~/.config/git/config", "~/.config/acme/config.toml", "~/.cache/x/", "/usr/share/zoneinfo", "/etc/ssl/certs", "/etc/gitconfig",
		"/opt/acme", "~/.sshx", "/home/ada/.gitconfig", "/srv", "~/..x", "/var/lib/acme",
	} {
		if why := ClosedRead(open); why != "" {
			t.Errorf("%s: %s", open, why)
		}
	}
	for _, closed := range []string{
		"", "/", "~", "~/", "~/.config", "~/.config/", "/etc", "/etc/", "~/.ssh", "~/.ssh/id_ed25519", "~/.aws/credentials", "~/.azure", "~/.config/gcloud", "~/.kube/config",
		"~/.docker/config.json", "~/.config/gh/hosts.yml", "~/.netrc", "~/.npmrc", "~/.pypirc", "~/.gnupg", "~/.git-credentials", "~/.config/git", "~/.config/git/credentials",
		"~/.hcp", "~/.hcp/state.json", "~/.config/hcpx/audit.key", "/home", "/home/ada", "/home/ada/.ssh", "/home/ada/.config", "/root", "/root/.aws", "/Users/ada/.kube",
		"/proc", "/proc/self/environ", "/etc/shadow", "/run/user/1000", "/run", "/var", "relative", "./x", "../x", "~/../x", "~/./x", "~//x", "/a/../b", "/a//b", "//", "~root/x", "/a\n", "~/..",
	} {
		if ClosedRead(closed) == "" {
			t.Errorf("%q is open", closed)
		}
	}
}
