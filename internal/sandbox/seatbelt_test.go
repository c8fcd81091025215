package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func macSpec(mode string) *Spec {
	return &Spec{
		Program: Program{"tool", "/usr/local/bin/tool"}, Uses: []Program{{"sh", "/bin/sh"}},
		UseDirs: []string{"/usr/local/libexec/tool"}, Exec: []string{"/Users/ada/.hcp/packs/tool"},
		Read: []string{"/Users/ada/.hcp/packs/tool", "/Users/ada/work space"}, Write: []string{"/Users/ada/work space"},
		Links:   []Link{{Target: "/Users/ada/.config/tool", HomeRel: ".config/tool"}},
		Network: Network{Mode: mode},
	}
}

func macProfile(spec *Spec) (string, []string) {
	j := seatbeltJail(spec, "/private/tmp/run")
	return seatbeltProfile(slices.Concat(j.Declared, j.Own, j.Base), spec.Network.Mode, 8123)
}

// §10.5: the profile of each network mode, as text.
func Test_10_5_seatbelt_profiles(t *testing.T) {
	for _, mode := range []string{"none", "full", "hosts"} {
		text, params := macProfile(macSpec(mode))
		got := text + "\n" + strings.Join(params, "\n") + "\n"
		golden := filepath.Join("testdata", "seatbelt", mode+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}

// §10.5: everything is denied first; what must never be allowed is denied last; only full and hosts have a network.
func Test_10_5_seatbelt_denies(t *testing.T) {
	for _, mode := range []string{"", "none", "full", "hosts"} {
		text, _ := macProfile(macSpec(mode))
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if lines[1] != "(deny default)" || !strings.HasPrefix(lines[len(lines)-2], "(deny file-write-setugid)") || !strings.HasPrefix(lines[len(lines)-1], "(deny process-exec*") {
			t.Errorf("%s: %s", mode, text)
		}
		if open := strings.Contains(text, "network-"); open != (mode == "full" || mode == "hosts") {
			t.Errorf("%s: a network: %v", mode, open)
		}
		if strings.Contains(text, "localhost:8123") != (mode == "hosts") {
			t.Errorf("%s: the proxy", mode)
		}
	}
}

// §10.5: the table of macOS has the rules of Linux, and calls nothing enforced that a report calls degraded.
func Test_10_5_seatbelt_table(t *testing.T) {
	names := func(f Facts) (list []string) {
		for _, r := range f.Rules {
			list = append(list, r.Name)
		}
		slices.Sort(list)
		return list
	}
	mac := Kernel{System: "darwin/arm64", Seatbelt: true}
	linux := Kernel{System: "linux/amd64", Supported: true, ABI: 7, Filter: true, Notify: true, CloseRange: true, Openat2: true, GetFd: true}
	if diff := cmp.Diff(names(linux.facts()), names(mac.facts())); diff != "" {
		t.Error(diff)
	}
	if f := mac.facts(); f.Backend != "seatbelt" || mac.refusal() != nil {
		t.Errorf("%+v", f)
	}
	for _, row := range mac.facts().Rules {
		if (row.State == "enforced") != (row.Detail == "") || (row.State != "enforced") != (slices.Contains(mac.degraded(), row.Name) || row.Name == "network-hosts") {
			t.Errorf("%+v", row)
		}
	}
}

// what a profile refers to
var reference = regexp.MustCompile(`\(param "(P\d+)"\)`)

// rules are the lines of a profile without their parameters; there is one for each directory above a path.
func rules(text string) []string {
	lines := strings.Split(reference.ReplaceAllString(text, ""), "\n")
	return slices.CompactFunc(lines, func(a, b string) bool { return a == b && strings.Contains(a, "file-read-metadata") })
}

// FuzzSeatbelt: whatever a path is called, it never stands in the text, and the text says the same as for another
// path in its place; each parameter is used and has its path whole.
func FuzzSeatbelt(f *testing.F) {
	for _, path := range []string{"/a b", `/x"))(allow default)`, "/\n(allow default)", `/\`, "/(param \"P0\")", "/ä=;#", "/a/../b", "relative"} {
		f.Add(path, true, false)
	}
	f.Fuzz(func(t *testing.T, path string, write, tree bool) {
		a := Access{Path: path, Read: true, Write: write, Tree: tree}
		text, params := seatbeltProfile([]Access{a}, "none", 0)
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(params, func(p string) bool { return strings.HasPrefix(p, m[1]+"=") }) {
				t.Fatalf("%s is no parameter", m[1])
			}
		}
		if !slices.ContainsFunc(params, func(p string) bool { _, value, _ := strings.Cut(p, "="); return value == path }) {
			t.Fatalf("the path is lost: %q", params)
		}
		plain, _ := seatbeltProfile([]Access{{Path: "/plain", Read: true, Write: write, Tree: tree}}, "none", 0)
		if diff := cmp.Diff(rules(plain), rules(text)); diff != "" {
			t.Fatal(diff)
		}
	})
}
