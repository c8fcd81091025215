package sandbox_test

import (
	"slices"
	"strings"
	"testing"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// roomy is a kernel below the floor of Landlock, where a run gets namespaces of its own.
func roomy(abi int) *sandbox.Kernel {
	k := able()
	k.ABI, k.Errata, k.Namespaces = abi, 0, true
	return &k
}

// §10.5: namespaces keep the whole contract, with Landlock's execute right and without any Landlock.
func Test_10_5_namespaces(t *testing.T) {
	for _, p := range postures() {
		if !p.spacious() {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			sandboxtest.Run(t, sandboxtest.Kind{Contained: true, Open: func(t *testing.T, scratch string) sandbox.Sandbox {
				o := p.options
				o.Scratch = scratch
				return confining(t, o)
			}})
		})
	}
}

// spacious says that runs have namespaces of their own.
func (p posture) spacious() bool { return p.options.Kernel != nil && p.options.Kernel.Namespaces }

// says whether an attack failed for the reason that its row wants. Where there are namespaces it may be that what is
// attacked is not there at all, or is mounted read-only.
func (p posture) says(reason string, row redteamtest.Row) bool {
	if strings.Contains(reason, row.Want) {
		return true
	}
	return p.spacious() && slices.ContainsFunc([]string{"no such file or directory", "read-only file system", "permission denied",
		"invalid argument", "no such process"}, func(other string) bool { return strings.Contains(reason, other) })
}

// loose says that a row works by what the report calls degraded: namespaces without any Landlock.
func (p posture) loose(row redteamtest.Row) bool {
	return p.spacious() && p.options.Kernel.ABI == 0 && slices.Contains([]string{"write to a device that may be read", "make a named socket",
		"command lines of anybody", "own groups of resources", "own mounts", "map of own users", "list all processes"}, row.Name)
}
