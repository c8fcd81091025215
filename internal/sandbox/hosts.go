package sandbox

import (
	"strconv"

	"hcpx/internal/egress"
	"hcpx/internal/protocol"
)

// The ports of a command's loopback that belong to the runtime.
const (
	namePort  = egress.NamePort
	proxyPort = egress.ProxyPort
)

// missHosts is why a kernel cannot keep network hosts (§10.5), "" when it can.
func missHosts(k Kernel) string {
	switch {
	case !k.Notify:
		return "This kernel or container has no seccomp user notification, so no connection can be made for the command."
	case !k.GetFd:
		return "This kernel or container has no pidfd_getfd, or Yama keeps processes from each other, so no connection can be made for the command."
	}
	return ""
}

// hostsRow is the rule's row in doctor's table.
func hostsRow(k Kernel) Rule {
	row := Rule{Name: "network-hosts", Mechanism: "seccomp user notification; the runtime connects, answers for names and is the proxy", State: "enforced"}
	if why := missHosts(k); why != "" {
		row.State, row.Detail = "missing", why
	}
	return row
}

// hostList reads the list of network hosts (§10.2).
func hostList(net Network) (*egress.List, error) { return egress.Parse(net.Hosts) }

// reachable says whether the list of a Spec can be kept here.
func (s *System) reachable(net Network) *protocol.Error {
	if why := missHosts(s.kernel()); why != "" {
		return unavailable("network-hosts", why)
	}
	if _, err := hostList(net); err != nil {
		return unavailable("network-hosts", "The network of this command cannot be kept: "+err.Error()+".")
	}
	return nil
}

// proxyNames are the variables by which programs find a proxy (§10.2). No variable takes hosts out of it.
func proxyNames() []string {
	return []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}
}

// proxied are those variables with the runtime's proxy.
func proxied() []string {
	var env []string
	for _, name := range proxyNames() {
		env = append(env, name+"=http://127.0.0.1:"+strconv.Itoa(proxyPort))
	}
	return env
}
