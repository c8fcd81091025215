package app

import (
	"context"
	"net"
	"net/netip"
	"strings"
)

// lookup resolves the names of network hosts (§10.2).
func (a *App) lookup() func(context.Context, string) ([]netip.Addr, error) {
	if a.o.Lookup != nil {
		return a.o.Lookup
	}
	return machineLookup
}

// machineLookup asks as this machine does: /etc/hosts first, then its name servers. A name with a dot is whole: no
// search list makes another one of it.
func machineLookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if strings.Contains(name, ".") {
		name += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}
