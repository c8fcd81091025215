package lifecycle

import (
	"path/filepath"
	"slices"

	"hcpx/internal/egress"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// disallow takes back what one form of allow gave. It looks at nothing but the state: what is gone, or could not be
// allowed today, can be taken back all the same.
func disallow(r AllowRequest, view *AllowView) func(*store.State) bool {
	view.Removed = true
	return func(st *store.State) bool {
		view.Bins, st.Bins = parted(st.Bins, func(b protocol.AllowedBin) bool {
			return slices.ContainsFunc(r.Bins, func(name string) bool { return b.Name == name || filepath.IsAbs(name) && b.Path == name })
		})
		view.Native, st.Native = parted(st.Native, func(id string) bool { return id == r.Native })
		view.Hosts, st.Hosts = parted(st.Hosts, func(h protocol.AllowedHost) bool {
			return h.Pack == r.HostPack && slices.ContainsFunc(r.Hosts, func(host string) bool { return h.Host == host || h.Host == spelling(host) })
		})
		view.Reads, st.Reads = parted(st.Reads, func(read protocol.AllowedRead) bool {
			return read.Pack == r.ReadPack && slices.Contains(r.Reads, read.Path)
		})
		return len(view.Bins)+len(view.Native)+len(view.Hosts)+len(view.Reads) > 0
	}
}

// parted divides a list by whether its entries fit.
func parted[T any](list []T, fits func(T) bool) (out, kept []T) {
	out = []T{}
	for _, one := range list {
		if fits(one) {
			out = append(out, one)
		} else {
			kept = append(kept, one)
		}
	}
	return out, kept
}

// spelling is how an entry stands in the state.
func spelling(host string) string {
	h, err := egress.ParseHost(host)
	if err != nil {
		return host
	}
	return h.String()
}
