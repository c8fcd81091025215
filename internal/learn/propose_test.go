package learn

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// facts of a made-up machine; paths that do not exist lead to themselves.
func facts() Facts {
	return Facts{
		Home: "/home/ada", Temp: "/tmp/learn-1", Work: []string{"/home/ada/work", "/home/ada/git"}, Path: []string{"/nowhere/bin"}, Given: []string{"/usr/lib", "/etc/hosts"},
		Closed: func(path string) string {
			for _, c := range []string{"~/.ssh", "~/.netrc", "/etc/ssh"} {
				if within(path, c) || within(c, path) {
					return "it is, holds or lies in " + c
				}
			}
			return ""
		},
		Protected: func(rel string, bare bool) string {
			if within(rel, ".git/hooks") {
				return ".git/hooks"
			}
			if rel == ".claude" && !bare {
				return rel
			}
			return ""
		},
		Dangerous: func(name string) bool { return base(name) == "python3" },
		Hosts: map[netip.Addr][]string{netip.MustParseAddr("127.0.0.1"): {"localhost"}, netip.MustParseAddr("10.0.0.7"): {"db", "db.lan"},
			netip.MustParseAddr("127.0.0.2"): {"VM", "localhost", "no/name"}},
		Addresses: func(name string) []netip.Addr {
			if name == "api.example.org" {
				return []netip.Addr{netip.MustParseAddr("93.184.216.5")}
			}
			return nil
		},
	}
}

func read(paths ...string) (list []File) {
	for _, p := range paths {
		list = append(list, File{Path: p, Real: p, Read: true})
	}
	return list
}

func numbered(format string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(format, i))
	}
	return list
}

func tool(argv ...string) Program {
	return Program{Path: "/opt/acme/" + argv[0], Real: "/opt/acme/" + argv[0], Argv: argv}
}

// §10.2: reads name what is outside and not given, the home directory by its sign, many files by their directory.
func Test_10_2_LearnProposesReads(t *testing.T) {
	for name, test := range map[string]struct {
		files []File
		want  []string
	}{
		"what every command gets":    {read("/usr/lib/x.so", "/etc/hosts"), nil},
		"what is its own":            {read("/home/ada/work/a", "/tmp/learn-1/b", "/proc/self/maps", "/dev/tty", "/opt/acme/tool"), nil},
		"what it made":               {[]File{{Path: "/srv/x", Real: "/srv/x", Write: true, Made: true}}, nil},
		"below the home directory":   {read("/home/ada/.acme.toml"), []string{"~/.acme.toml"}},
		"outside":                    {read("/srv/data/one"), []string{"/srv/data/one"}},
		"a link keeps its name":      {[]File{{Path: "/home/ada/.acmerc", Real: "/home/ada/dots/acmerc", Read: true}}, []string{"~/.acmerc"}},
		"a link into what is given":  {[]File{{Path: "/etc/alternatives/x", Real: "/usr/lib/x", Read: true}}, nil},
		"few of a directory":         {read(numbered("/srv/data/%d", many-1)...), numbered("/srv/data/%d", many-1)},
		"many of a directory":        {read(numbered("/srv/data/%d", many)...), []string{"/srv/data"}},
		"many of many":               {read(append(numbered("/srv/data/a/%d", many), numbered("/srv/data/%d", many-1)...)...), []string{"/srv/data"}},
		"many below, deep":           {read(numbered("/srv/data/x/%d/f", many)...), []string{"/srv/data/x"}},
		"many below, high":           {read(numbered("/srv/data/%d/f", many)...), numbered("/srv/data/%d/f", many)},
		"many of a top":              {read(numbered("/srv/%d", many+1)...), numbered("/srv/%d", many+1)},
		"many of the home directory": {read(numbered("/home/ada/f%d", many)...), numbered("~/f%d", many)},
		"a directory and its files":  {append([]File{{Path: "/srv/data", Real: "/srv/data", Dir: true, Read: true}}, read("/srv/data/x")...), []string{"/srv/data"}},
		"a directory of everything":  {[]File{{Path: "/", Real: "/", Dir: true, Read: true}, {Path: "/home/ada", Real: "/home/ada", Dir: true, Read: true}}, nil},
		"a directory of programs":    {[]File{{Path: "/nowhere/bin", Real: "/nowhere/bin", Dir: true, Read: true}}, nil},
		"an odd name":                {read("/srv/data/a\x01", "/srv/data/\xff", "/home/ada/.ssh/\x01"), nil},
		"what stays closed":          {read("/home/ada/.netrc", "/etc/ssh/key", "/home/ada/.ssh/id"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Propose(&Seen{Programs: []Program{tool("tool")}, Files: test.files}, facts())
			if diff := cmp.Diff(test.want, got.Wrap.Reads); diff != "" {
				t.Error(diff)
			}
			if (len(test.want) > 0) != strings.Contains(strings.Join(got.Commands, "\n"), "--read PACK") {
				t.Errorf("commands %q", got.Commands)
			}
			if want := strings.Count(name, "stays closed") * 3; len(got.Closed) != want {
				t.Errorf("closed %+v", got.Closed)
			}
		})
	}
}

// §10.2: hosts are named as the program was told, else as the resolver was asked; what has no name is an address.
func Test_10_2_LearnProposesHosts(t *testing.T) {
	answers := []Answer{{Name: "www.example.org", At: []netip.Addr{netip.MustParseAddr("93.184.216.1")}}, {Name: "wiki.corp.example", At: []netip.Addr{netip.MustParseAddr("93.184.216.2")}},
		{"a.example.org", []netip.Addr{netip.MustParseAddr("93.184.216.3")}}, {"b.example.org", []netip.Addr{netip.MustParseAddr("93.184.216.3")}},
		{"meta.example.org", []netip.Addr{netip.MustParseAddr("168.63.129.16")}}, {"six.example.org", []netip.Addr{netip.MustParseAddr("64:ff9b::a00:1")}}}
	for name, test := range map[string]struct {
		to   string
		argv []string
		want []string
		note string
	}{
		"asked of a server":             {"93.184.216.1:443", []string{"tool"}, []string{"www.example.org:443"}, ""},
		"asked with a suffix":           {"93.184.216.2:80", []string{"tool", "http://wiki/x"}, []string{"wiki:80"}, ""},
		"told by a URL":                 {"93.184.216.5:443", []string{"tool", "--url=https://ada@API.example.org./x"}, []string{"api.example.org:443"}, ""},
		"told as an address":            {"127.0.0.1:8080", []string{"tool", "http://127.0.0.1:8080/"}, []string{"127.0.0.1:8080"}, ""},
		"told with a port":              {"127.0.0.1:8080", []string{"tool", "127.0.0.1:8080"}, []string{"127.0.0.1:8080"}, ""},
		"told as an address of six":     {"[::1]:8080", []string{"tool", "-h", "::1"}, []string{"[::1]:8080"}, ""},
		"the loopback":                  {"127.0.0.1:8080", []string{"tool"}, []string{"localhost:8080"}, ""},
		"of the hosts file, and inside": {"10.0.0.7:5432", []string{"tool", "-h", "db.lan"}, []string{"10.0.0.7:5432", "db.lan:5432"}, "must stand there itself"},
		"of the hosts file, all names":  {"10.0.0.7:5432", []string{"tool"}, []string{"10.0.0.7:5432", "db.lan:5432", "db:5432"}, "has several names (db, db.lan)"},
		"of the hosts file, in a URL":   {"127.0.0.2:80", []string{"tool", "http://vm:80/"}, []string{"127.0.0.2:80", "vm:80"}, "must stand there itself"},
		"of the hosts file, in a text":  {"127.0.0.2:80", []string{"tool", "-c", "get('http://vm:80')"}, []string{"127.0.0.2:80", "vm:80"}, ""},
		"a loopback of another number":  {"127.0.0.2:80", []string{"tool", "http://localhost/"}, []string{"127.0.0.2:80", "localhost:80"}, ""},
		"asked by two names":            {"93.184.216.3:80", []string{"tool", "http://a.example.org"}, []string{"a.example.org:80", "b.example.org:80"}, "has several names"},
		"asked and inside":              {"168.63.129.16:80", []string{"tool"}, []string{"168.63.129.16:80", "meta.example.org:80"}, "must stand there itself"},
		"carried by six":                {"[64:ff9b::a00:1]:80", []string{"tool"}, []string{"[64:ff9b::a00:1]:80", "six.example.org:80"}, "must stand there itself"},
		"no host":                       {"0.0.0.0:80", []string{"tool"}, nil, "no list of hosts takes"},
		"a password of a URL":           {"93.184.216.77:443", []string{"tool", "http://ada:se'cret,@x.example.org"}, []string{"93.184.216.77:443"}, ""},
		"unknown":                       {"93.184.216.77:443", []string{"tool", "secret"}, []string{"93.184.216.77:443"}, "No name is known"},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			resolve := f.Addresses
			f.Addresses = func(name string) []netip.Addr {
				if strings.Contains(name, "secret") || name == "ada" {
					t.Errorf("%q was looked up", name)
				}
				return resolve(name)
			}
			got := Propose(&Seen{Programs: []Program{tool(test.argv...)}, Reached: []Reached{{netip.MustParseAddrPort(test.to)}}, Answers: answers}, f)
			if diff := cmp.Diff(test.want, got.Wrap.Network.Hosts); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(strings.Join(got.Notes, "\n"), test.note) {
				t.Errorf("notes %q", got.Notes)
			}
		})
	}
	for _, n := range []struct {
		seen Seen
		want string
	}{{Seen{}, `"none"`}, {Seen{Listens: true, Reached: []Reached{{netip.MustParseAddrPort("93.184.216.1:1")}}}, `{"hosts":["93.184.216.1:1"]}`}} {
		got, err := json.Marshal(Propose(&n.seen, facts()).Wrap.Network)
		if n.seen.Listens {
			n.want = `"full"`
		}
		if err != nil || string(got) != n.want {
			t.Errorf("%s, want %s: %v", got, n.want, err)
		}
	}
}

// §10.2: what no manifest can hold is told by a text that a person can read, and a list of descriptors is told too.
func Test_10_2_LearnTellsOddNames(t *testing.T) {
	odd := tool("a\x1b")
	got := Propose(&Seen{Programs: []Program{tool("tool"), odd}, Files: append(read("/srv/\xff\n", "/proc/self/fd", "/proc/self/fd/3"), File{Path: "/home/ada/work/\xfe", Real: "/home/ada/work/\xfe", Write: true})}, facts())
	notes := strings.Join(got.Notes, "\n")
	for _, want := range []string{`/srv/\xff\x0a, a name that no pack`, "It reads /proc/self/fd, which", `/opt/acme/a\x1b, a name`} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is not in %q", want, notes)
		}
	}
	if got.Wrap.Uses != nil || got.Wrap.Reads != nil || len(got.Closed) != 0 || !cmp.Equal(got.Writes.Workspace, []string{`~/work/\xfe`}) {
		t.Errorf("%+v", got)
	}
}

// §10.2: a program that listens needs network full, which has datagrams.
func Test_10_2_LearnNotesDatagrams(t *testing.T) {
	for listens, want := range map[bool]bool{false: true, true: false} {
		got := Propose(&Seen{Listens: listens, Datagrams: []netip.AddrPort{netip.MustParseAddrPort("0.0.0.0:18200")}}, facts())
		if strings.Contains(strings.Join(got.Notes, "\n"), "datagrams") != want {
			t.Errorf("%v: %q", listens, got.Notes)
		}
	}
}

// §10.2: programs that PATH does not find stand by path, several of a directory as the directory.
func Test_10_2_LearnProposesPrograms(t *testing.T) {
	dir := t.TempDir()
	f := facts()
	f.Path = []string{dir}
	sh := putProgram(t, dir, "sh")
	for name, test := range map[string]struct {
		programs []Program
		bin      string
		uses     []string
		commands []string
		note     string
	}{
		"by name":                    {[]Program{sh, sh}, "sh", nil, []string{"hcpx allow sh"}, ""},
		"by path":                    {[]Program{tool("tool"), sh, tool("helper")}, "tool", []string{"sh", "/opt/acme/helper"}, []string{"hcpx allow /opt/acme/tool", "hcpx allow sh /opt/acme/helper"}, ""},
		"several of a directory":     {[]Program{sh, tool("a"), tool("b")}, "sh", []string{"/opt/acme/"}, []string{"hcpx allow sh", "hcpx allow /opt/acme/"}, ""},
		"a second one of a name":     {[]Program{sh, tool("sh")}, "sh", []string{"/opt/acme/"}, nil, ""},
		"an interpreter":             {[]Program{tool("python3")}, "python3", nil, []string{"hcpx allow --dangerous /opt/acme/python3"}, "runs whatever"},
		"a script of the workspace":  {[]Program{{Path: "/home/ada/work/x.sh", Real: "/home/ada/work/x.sh", Head: "#!/bin/sh"}, sh}, "./bin/x.sh", []string{"sh"}, []string{"hcpx allow sh"}, "Ship /home/ada/work/x.sh"},
		"what it made itself":        {[]Program{sh, {Path: "/tmp/learn-1/x", Real: "/tmp/learn-1/x"}}, "sh", nil, nil, "can't be started"},
		"a script before a script":   {[]Program{{Path: "/opt/shims/pip", Real: "/opt/shims/pip", Head: "#!/bin/sh"}, sh, {Path: "/opt/hooks/pip", Real: "/opt/hooks/pip"}, {Path: "/opt/acme/pip", Real: "/opt/acme/pip", Head: "#!/opt/acme/py"}}, "pip", []string{"sh", "/opt/hooks/", "/opt/acme/"}, nil, "Learn that one itself: hcpx allow --learn -- /opt/acme/pip"},
		"a script before the binary": {[]Program{{Path: "/opt/acme/py", Real: "/opt/acme/py", Head: "#!/bin/sh"}, sh, tool("py3")}, "py", []string{"sh", "/opt/acme/py3"}, nil, "Learn that one itself"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Propose(&Seen{Programs: test.programs}, f)
			if got.Wrap.Bin != test.bin || !cmp.Equal(test.uses, got.Wrap.Uses) {
				t.Errorf("bin %q, uses %q", got.Wrap.Bin, got.Wrap.Uses)
			}
			if test.commands != nil && !cmp.Equal(test.commands, got.Commands) {
				t.Errorf("commands %q", got.Commands)
			}
			if !strings.Contains(strings.Join(got.Notes, "\n"), test.note) {
				t.Errorf("notes %q", got.Notes)
			}
		})
	}
}

// §10.2: whoever names a program or a file does not choose what the proposed commands do: to a shell each name is one
// word, to hcpx none is an option, and what no pack can declare is not proposed.
func Test_10_2_LearnProposesNoOptions(t *testing.T) {
	dir := t.TempDir()
	names := []string{"-x", "--dangerous", "--native=evil", "-", "~x", "=x", "a b", "it's", "$(id)", "`id`", "a;id", "a\nb", "#x", "é", "-$(id)", "*"}
	f := facts()
	f.Path = []string{dir}
	for _, first := range append([]string{"cat"}, names...) {
		programs, files := []Program{putProgram(t, dir, first)}, []File{}
		for _, name := range names {
			programs = append(programs, putProgram(t, dir, name), tool(name))
			files = append(files, read("/srv/"+name, "/home/ada/"+name)...)
		}
		got := Propose(&Seen{Programs: programs, Files: files}, f)
		for _, name := range got.Wrap.Uses {
			if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "~") {
				t.Errorf("%s: uses %q, which no pack can", first, name)
			}
		}
		if told := strings.Contains(strings.Join(got.Notes, "\n"), "begins with a dash or a tilde"); told != strings.ContainsAny(first[:1], "-~") {
			t.Errorf("%s: notes %q", first, got.Notes)
		}
		for _, command := range got.Commands {
			out, err := exec.Command("sh", "-c", `hcpx() { printf '%s\0' "$@"; }; `+command).Output()
			words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
			if err != nil || words[0] != "allow" {
				t.Fatalf("%s: %q, %v", command, words, err)
			}
			words = words[1:]
			if words[0] == "--read" {
				words = words[2:]
			}
			for _, word := range words {
				if strings.HasPrefix(word, "-") || word != first && !slices.Contains(got.Wrap.Uses, word) && !slices.Contains(got.Wrap.Reads, word) {
					t.Errorf("%s: %q is no program and no path that is proposed", command, word)
				}
			}
		}
	}
}

// §10.2: where it wrote, and what that makes of the command.
func Test_10_2_LearnProposesWrites(t *testing.T) {
	wrote := func(path string) File { return File{Path: path, Real: path, Write: true, Made: true} }
	bare := func(path string) File { return File{Path: path, Real: path, Write: true, Made: true, Bare: true} }
	moment := wrote("/home/ada/work/lock")
	moment.Gone = true
	for name, test := range map[string]struct {
		files             []File
		operation, land   string
		work, home, other []string
		protected         []string
	}{
		"nothing":            {nil, "read", "personal", []string{}, []string{}, []string{}, nil},
		"a look":             {read("/home/ada/work/a"), "read", "local", []string{}, []string{}, []string{}, nil},
		"the workspace":      {[]File{wrote("/home/ada/work/a")}, "write", "local", []string{"~/work/a"}, []string{}, []string{}, nil},
		"for a moment":       {[]File{moment}, "write", "local", []string{}, []string{}, []string{}, nil},
		"temporary files":    {[]File{wrote("/tmp/learn-1/a"), wrote("/dev/null")}, "read", "personal", []string{}, []string{}, []string{}, nil},
		"the home directory": {[]File{wrote("/home/ada/.cache/a")}, "read", "personal", []string{}, []string{"~/.cache/a"}, []string{}, nil},
		"other places":       {[]File{wrote("/tmp/a")}, "read", "personal", []string{}, []string{}, []string{"/tmp/a"}, nil},
		"protected names": {[]File{wrote("/home/ada/work/.git/hooks/a"), wrote("/home/ada/git/hooks/b"), wrote("/home/ada/work/hooks/c")}, "write", "local",
			[]string{"~/git/hooks/b", "~/work/.git/hooks/a", "~/work/hooks/c"}, []string{}, []string{}, []string{".git/hooks"}},
		"a parent of them":     {[]File{bare("/home/ada/work/.claude")}, "write", "local", []string{"~/work/.claude"}, []string{}, []string{}, nil},
		"a parent that is new": {[]File{wrote("/home/ada/work/.claude")}, "write", "local", []string{"~/work/.claude"}, []string{}, []string{}, []string{".claude"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Propose(&Seen{Programs: []Program{tool("tool")}, Files: test.files}, facts())
			want := Proposal{Policy: Policy{test.operation, Privacy{test.land}, test.protected}, Writes: Writes{test.work, test.home, test.other}}
			if diff := cmp.Diff(want, Proposal{Policy: got.Policy, Writes: got.Writes}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
