package egress

import (
	"net/netip"
	"testing"
)

func Test_8_4_NoCredentialGoesToTheLinkOrTheMetadata(t *testing.T) {
	for addr, want := range map[string]bool{
		"93.184.216.34": false, "10.1.2.3": false, "100.64.0.1": false, "127.0.0.1": false, "::1": false, "fd12::1": false, "2606:2800:220:1::1": false,
		"169.254.169.254": true, "::ffff:169.254.169.254": true, "169.254.1.1": true, "fe80::1": true, "fd00:ec2::254": true, "100.100.100.200": true,
		"0.0.0.0": true, "::": true, "224.0.0.1": true, "255.255.255.255": true, "64:ff9b::a9fe:a9fe": true,
	} {
		if got := Never(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
	if !Never(netip.Addr{}) {
		t.Error("no address at all is taken")
	}
}
