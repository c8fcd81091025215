package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The macOS backend (§10.5): Seatbelt, by a profile that is made for each run. What stands here is the same on every
// system, so that its text is tested everywhere; seatbelt_darwin.go starts the command. Nobody has run it on a Mac
// yet: the canary is what decides there.

// seatbeltBase is what every command may have on macOS: the shared cache of libraries, libraries and shared data,
// certificates, time zones, four devices.
func seatbeltBase() []Access {
	base := []Access{
		{Path: "/dev/null", Read: true, Write: true, Device: true},
		{Path: "/dev/zero", Read: true, Device: true},
		{Path: "/dev/random", Read: true, Device: true},
		{Path: "/dev/urandom", Read: true, Device: true},
		{Path: "/private/etc/localtime", Read: true},
		{Path: "/private/etc/ssl/openssl.cnf", Read: true},
		{Path: "/private/etc/ssl/cert.pem", Read: true},
		{Path: "/usr/lib/dyld", Read: true, Execute: true},
	}
	for _, dir := range append(seatbeltLibraries(), "/usr/share", "/private/etc/ssl/certs", "/private/var/db/timezone") {
		base = append(base, Access{Path: dir, Read: true, Tree: true})
	}
	return base
}

// seatbeltLibraries are the trees whose files may be loaded as code, beside programs.
func seatbeltLibraries() []string {
	return []string{"/usr/lib", "/usr/local/lib", "/System/Library", "/System/Volumes/Preboot/Cryptexes/OS", "/Library/Apple/System/Library"}
}

// seatbeltJail is the jail of a Spec: home is the private directory.
func seatbeltJail(spec *Spec, home string) Jail {
	j := Jail{Base: seatbeltBase(), Own: []Access{
		{Path: home + "/" + homePart, Read: true, Write: true, Tree: true},
		{Path: home + "/" + tempPart, Read: true, Write: true, Tree: true},
		{Path: home + "/" + binPart, Read: true, Tree: true},
	}}
	if len(spec.Files) > 0 {
		j.Own = append(j.Own, Access{Path: home + "/" + filePart, Read: true, Tree: true})
	}
	for _, p := range append([]Program{spec.Program}, spec.Uses...) {
		j.Declared = append(j.Declared, Access{Path: p.Path, Read: true, Execute: true})
	}
	for _, dir := range append(slices.Clone(spec.UseDirs), spec.Exec...) {
		j.Declared = append(j.Declared, Access{Path: dir, Read: true, Execute: true, Tree: true})
	}
	reads := slices.Clone(spec.Read)
	for _, l := range spec.Links {
		reads = append(reads, l.Target)
	}
	for _, tree := range reads {
		j.Declared = append(j.Declared, Access{Path: tree, Read: true, Tree: true})
	}
	for _, tree := range spec.Write {
		j.Declared = append(j.Declared, Access{Path: tree, Read: true, Write: true, Tree: true})
	}
	return j
}

// profile is a Seatbelt profile in the making. A path never stands in the text: it is a parameter, so that none has
// to be quoted and no name in the workspace can say anything to the compiler of profiles.
type profile struct {
	text   strings.Builder
	params []string // NAME=path, as they follow -D
	names  map[string]string
}

// seatbeltProfile is the profile for real paths, and its parameters. proxy is the port of the runtime's own proxy,
// which is all that a command with network hosts may connect to. In a profile the last rule that fits decides.
func seatbeltProfile(access []Access, network string, proxy int) (string, []string) {
	p := &profile{names: map[string]string{}}
	p.line("(version 1)")
	p.line("(deny default)")
	for _, fixed := range seatbeltFixed() {
		p.line(fixed)
	}
	for _, dir := range ancestorsOf(access) {
		p.allow("file-read-metadata", "literal", dir)
	}
	for _, dir := range seatbeltLibraries() {
		p.allow("file-map-executable", "subpath", dir)
	}
	for _, a := range access {
		p.access(a)
	}
	switch network {
	case "full":
		p.line(`(allow network-outbound (remote ip))`)
		p.line(`(allow network-bind network-inbound (local ip))`)
		p.line(`(allow network-outbound (literal "/private/var/run/mDNSResponder"))`)
	case "hosts":
		p.line(fmt.Sprintf(`(allow network-outbound (remote tcp "localhost:%d"))`, proxy))
	}
	p.line(`(deny file-write-setugid)`)
	p.line(`(deny process-exec* (require-any (file-mode #o4000) (file-mode #o2000)))`)
	return p.text.String(), p.params
}

// seatbeltFixed are the rules that depend on nothing: processes of the same jail, and the few questions that the
// system's own libraries ask.
func seatbeltFixed() []string {
	return []string{
		`(allow process-fork)`,
		`(allow signal (target same-sandbox))`,
		`(allow process-info* (target same-sandbox))`,
		`(allow sysctl-read (sysctl-name "hw.activecpu" "hw.cachelinesize" "hw.logicalcpu" "hw.logicalcpu_max" "hw.memsize" "hw.ncpu" "hw.pagesize" "hw.pagesize_compat" "hw.physicalcpu" "hw.physicalcpu_max" "kern.argmax" "kern.maxfilesperproc" "kern.osproductversion" "kern.osrelease" "kern.ostype" "kern.osversion" "kern.usrstack64" "kern.version"))`,
		`(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))`,
	}
}

func (p *profile) line(text string) { p.text.WriteString(text + "\n") }

// param names a path.
func (p *profile) param(at string) string {
	name, known := p.names[at]
	if !known {
		name = fmt.Sprintf("P%d", len(p.params))
		p.names[at] = name
		p.params = append(p.params, name+"="+at)
	}
	return name
}

func (p *profile) allow(operation, match, at string) {
	p.line(fmt.Sprintf(`(allow %s (%s (param %q)))`, operation, match, p.param(at)))
}

func (p *profile) access(a Access) {
	match := "literal"
	if a.Tree {
		match = "subpath"
	}
	if a.Read {
		p.allow("file-read*", match, a.Path)
	}
	switch {
	case a.Write && a.Device:
		p.allow("file-write-data", match, a.Path)
	case a.Write:
		p.allow("file-write*", match, a.Path)
	}
	if a.Execute {
		p.allow("process-exec*", match, a.Path)
		p.allow("file-map-executable", match, a.Path)
	}
}

// ancestorsOf are the directories above the paths: a program looks at them on its way, and sees no more than that
// they are there.
func ancestorsOf(access []Access) []string {
	var all []string
	for _, a := range access {
		for dir := path.Dir(a.Path); ; dir = path.Dir(dir) {
			all = append(all, dir)
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// seatbeltRows is doctor's table on macOS.
func seatbeltRows() []Rule {
	const asked = "Seatbelt refuses operations, not system calls: what it has no operation for stays open."
	const noHelper = "Limits of a process are set before its start by a helper, which does not exist here."
	const noProxy = "The runtime's proxy is not joined to this backend."
	return []Rule{
		{"system-calls", "Seatbelt, everything denied that is not listed", "degraded", asked},
		{"files", "Seatbelt file-read* and file-write* on what is listed", "enforced", ""},
		{"programs", "Seatbelt process-exec* on what is listed", "enforced", ""},
		{"signals", "Seatbelt: signals within the sandbox only", "enforced", ""},
		{"abstract-sockets", "this system has none; no unix socket", "enforced", ""},
		{"metadata", "Seatbelt file-write* covers modes, owners, times and attributes", "enforced", ""},
		{"descriptors", "close-on-exec on what hcpx opens", "degraded", "What hcpx itself inherited and did not open is not closed."},
		{"network-hosts", "only the port of hcpx's own proxy", "missing", noProxy},
		{"privileges", "no program with a setuid or setgid bit is started", "enforced", ""},
		{"runtime", "Seatbelt: information on processes within the sandbox only", "enforced", ""},
		{"launcher", "hcpx has no thread in the sandbox", "enforced", ""},
		{"setid-files", "Seatbelt: no setuid or setgid bit is set", "enforced", ""},
		{"environment", "built from nothing", "enforced", ""},
		{"network-none", "Seatbelt: no network operation", "enforced", ""},
		{"network-full", "Seatbelt: internet addresses, and the system's resolver", "enforced", ""},
		{"survivors", "SIGKILL to the process group", "degraded", "What leaves the group lives on, confined."},
		{"wall-time", "timer, SIGTERM, grace, SIGKILL", "enforced", ""},
		{"output", "capped while it is read", "enforced", ""},
		{"cpu", "RLIMIT_CPU", "missing", noHelper},
		{"open-files", "RLIMIT_NOFILE", "missing", noHelper},
		{"file-size", "RLIMIT_FSIZE", "missing", noHelper},
		{"core-dumps", "RLIMIT_CORE", "missing", noHelper},
		{"memory", "nothing", "missing", "Nothing counts the memory of a run here."},
		{"processes", "nothing", "missing", "Nothing counts the processes of a run here."},
	}
}

// seatbeltDegraded are the rules that a report names.
func seatbeltDegraded() []string {
	var names []string
	for _, row := range seatbeltRows() {
		if row.State != "enforced" && row.Name != "network-hosts" { // which refuses the run instead
			names = append(names, row.Name)
		}
	}
	return names
}
