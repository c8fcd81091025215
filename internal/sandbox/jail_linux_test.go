package sandbox_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// tool is a program of this machine, or the test is skipped.
func tool(t testing.TB, name string) sandbox.Program {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not on this machine", name)
	}
	return sandbox.Program{Name: name, Path: path}
}

// shell runs a script in the jail with the named tools.
func (s *scene) shell(script string, tools ...string) *sandbox.Outcome {
	s.t.Helper()
	spec := s.spec("")
	spec.Program, spec.Args = tool(s.t, "sh"), []string{"-eu", "-c", script}
	for _, name := range tools {
		spec.Uses = append(spec.Uses, tool(s.t, name))
	}
	return sandboxtest.Exec(s.t, s.sandbox, spec)
}

// §10.2: programs that people have run inside the jail; without the broker most of these fail.
func Test_10_2_real_programs(t *testing.T) {
	for name, c := range map[string]struct {
		script, want string
		tools        []string
	}{
		"chmod and touch":         {"echo x >f; chmod 755 f; touch -d 2001-01-01 f; stat -c '%a %Y' f", "755 978307200\n", []string{"chmod", "touch", "stat"}},
		"install":                 {"echo x >f; install -m 711 f g; stat -c %a g", "711\n", []string{"install", "stat"}},
		"tar":                     {"mkdir d; echo x >d/f; chmod 640 d/f; tar cf a.tar d; mkdir e; tar xf a.tar -C e; stat -c %a e/d/f", "640\n", []string{"mkdir", "chmod", "tar", "stat"}},
		"cp -p":                   {"echo x >f; touch -d 2001-01-01 f; cp -p f g; stat -c %Y g", "978307200\n", []string{"touch", "cp", "stat"}},
		"mv between trees":        {"mkdir a b; echo x >a/f; mv a/f b/f; mv b/f $HOME/f; cat $HOME/f", "x\n", []string{"mkdir", "mv", "cat"}},
		"ln -s inside":            {"echo x >f; ln -s f l; chmod 600 l; stat -c %a f; cat l", "600\nx\n", []string{"ln", "chmod", "stat", "cat"}},
		"pipes":                   {"echo hello | tr a-z A-Z | cat", "HELLO\n", []string{"tr", "cat"}},
		"awk by its alternatives": {"echo a b | awk '{print $2}'", "b\n", []string{"awk"}},
		"mktemp":                  {"f=$(mktemp); case $f in $TMPDIR/*) echo ok;; esac", "ok\n", []string{"mktemp"}},
		"devices":                 {"echo x >/dev/null; head -c 4 /dev/urandom | wc -c", "4\n", []string{"head", "wc"}},
		"unlisted":                {"ls 2>/dev/null || echo refused $?; /bin/ls 2>/dev/null || echo refused $?", "refused 127\nrefused 126\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if postureOf(t).spacious() {
				c.want = strings.ReplaceAll(c.want, "refused 126", "refused 127") // it is not there
			}
			if o := s.shell(c.script, c.tools...); o.Exit != 0 || string(o.Stdout) != c.want {
				t.Errorf("exit %d, %q, want %q\n%s", o.Exit, o.Stdout, c.want, o.Stderr)
			}
		})
	}
}

// §10.2: git makes a repository and commits in it.
func Test_10_2_git(t *testing.T) {
	s := newScene(t)
	spec := s.spec("")
	spec.Program, spec.Args = tool(t, "sh"), []string{"-eu", "-c", "git init -q .; git add file; git commit -qm first; git log --format=%s"}
	spec.Uses = []sandbox.Program{tool(t, "git")}
	core, err := exec.Command("git", "--exec-path").Output()
	must(t, err)
	spec.UseDirs = []string{strings.TrimSpace(string(core))}
	spec.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
	if o := sandboxtest.Exec(t, s.sandbox, spec); o.Exit != 0 || string(o.Stdout) != "first\n" {
		t.Errorf("exit %d, %q\n%s", o.Exit, o.Stdout, o.Stderr)
	}
}

// §10.2: what cannot be in the jail is refused before anything is made, never left out.
func Test_10_2_jail_refuses(t *testing.T) {
	s := newScene(t)
	link := s.land + "/link"
	must(t, os.Symlink(s.outside, link))
	missing := s.outside + "/missing"
	for name, c := range map[string]struct {
		change func(*sandbox.Spec)
		code   protocol.Code
	}{
		"missing readable path":           {func(p *sandbox.Spec) { p.Read = []string{missing} }, protocol.JailEscape},
		"missing writable path":           {func(p *sandbox.Spec) { p.Write = []string{missing} }, protocol.JailEscape},
		"missing directory of programs":   {func(p *sandbox.Spec) { p.UseDirs = []string{missing} }, protocol.JailEscape},
		"missing link":                    {func(p *sandbox.Spec) { p.Links = []sandbox.Link{{Target: missing}} }, protocol.JailEscape},
		"link out of HOME":                {func(p *sandbox.Spec) { p.Links = []sandbox.Link{{Target: s.lent, HomeRel: "../x"}} }, protocol.JailEscape},
		"relative path":                   {func(p *sandbox.Spec) { p.Read = []string{"land"} }, protocol.JailEscape},
		"the whole machine":               {func(p *sandbox.Spec) { p.Read = []string{"/"} }, protocol.JailEscape},
		"working directory outside":       {func(p *sandbox.Spec) { p.Dir = s.outside }, protocol.JailEscape},
		"working directory by a link":     {func(p *sandbox.Spec) { p.Dir = link }, protocol.JailEscape},
		"working directory by dots":       {func(p *sandbox.Spec) { p.Dir = s.land + "/../outside" }, protocol.JailEscape},
		"private directories readable":    {func(p *sandbox.Spec) { p.Read = append(p.Read, filepath.Dir(s.land)) }, protocol.JailEscape},
		"a private directory readable":    {func(p *sandbox.Spec) { p.Read = append(p.Read, s.readable+"/../scratch/0") }, protocol.JailEscape},
		"private directories by a file":   {func(p *sandbox.Spec) { p.Write = append(p.Write, filepath.Dir(s.land)+"/scratch") }, protocol.JailEscape},
		"private directories executable":  {func(p *sandbox.Spec) { p.Exec = append(p.Exec, filepath.Dir(s.land)) }, protocol.JailEscape},
		"private directories of programs": {func(p *sandbox.Spec) { p.UseDirs = append(p.UseDirs, filepath.Dir(s.land)) }, protocol.JailEscape},
		"private directories as a read":   {func(p *sandbox.Spec) { p.Links = []sandbox.Link{{Target: filepath.Dir(s.land)}} }, protocol.JailEscape},
		"program that is a directory":     {func(p *sandbox.Spec) { p.Program.Path = s.land }, protocol.BinNotAllowed},
		"program that is not executable":  {func(p *sandbox.Spec) { p.Program.Path = s.lent }, protocol.BinNotAllowed},
		"program name with a slash":       {func(p *sandbox.Spec) { p.Program.Name = "../sh" }, protocol.BinNotAllowed},
		"two programs of one name": {func(p *sandbox.Spec) {
			p.Uses = []sandbox.Program{{Name: p.Program.Name, Path: "/bin/true"}}
		}, protocol.BinNotAllowed},
		"listed hosts": {func(p *sandbox.Spec) {
			p.Network = sandbox.Network{Mode: "hosts", Hosts: []string{"*.example.org:443"}}
		}, protocol.SandboxUnavailable},
		"unknown network mode": {func(p *sandbox.Spec) { p.Network.Mode = "some" }, protocol.SandboxUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			spec := s.spec("nothing")
			c.change(spec)
			for question, err := range map[string]*protocol.Error{"check": s.sandbox.Check(spec), "prepare": prepared(s.sandbox, spec)} {
				if err == nil || err.Code != c.code {
					t.Errorf("%s: %v, want %s", question, err, c.code)
				}
			}
		})
	}
}

func prepared(s sandbox.Sandbox, spec *sandbox.Spec) *protocol.Error {
	box, err := s.Prepare(spec)
	if err == nil {
		_ = box.Close()
	}
	return err
}

// §10.2: a script runs only when its interpreter is listed too.
func Test_10_2_script_needs_interpreter(t *testing.T) {
	s := newScene(t)
	script := s.readable + "/script"
	must(t, os.WriteFile(script, []byte("#!/bin/sh\necho ran $0\n"), 0o755))
	spec := s.spec("")
	spec.Program, spec.Args, spec.Read = sandbox.Program{Name: "script", Path: script}, nil, nil
	box, refused := s.sandbox.Prepare(spec)
	if refused != nil {
		t.Fatal(refused)
	}
	defer box.Close()
	if _, refused := box.Run(context.Background()); refused == nil || refused.Code != protocol.BinNotAllowed || !strings.Contains(refused.Message, "interpreter") {
		t.Errorf("without its interpreter: %v", refused)
	}
	spec.Uses = []sandbox.Program{{Name: "sh", Path: "/bin/sh"}}
	if o := sandboxtest.Exec(t, s.sandbox, spec); string(o.Stdout) != "ran "+script+"\n" {
		t.Errorf("with its interpreter: %q %s", o.Stdout, o.Stderr)
	}
}

// §10.2: the pack's own executables run, and their tree is not writable.
func Test_10_2_own_executables(t *testing.T) {
	s := newScene(t)
	own := s.readable + "/own"
	must(t, os.WriteFile(own, []byte("#!/bin/sh\necho own\n"), 0o755))
	spec := s.spec("")
	spec.Program, spec.Args = tool(t, "sh"), []string{"-c", own + "; echo x >>" + own}
	spec.Read, spec.Exec = nil, []string{s.readable}
	if o := sandboxtest.Exec(t, s.sandbox, spec); string(o.Stdout) != "own\n" || o.Exit == 0 {
		t.Errorf("%q %s", o.Stdout, o.Stderr)
	}
}

// §10.2: a declared read under ~ stands at its place in the private HOME.
func Test_10_2_links_in_home(t *testing.T) {
	s := newScene(t)
	spec := s.spec("")
	spec.Program, spec.Args = tool(t, "sh"), []string{"-c", "cat $HOME/.config/tool/rc; cat " + s.secret}
	spec.Uses, spec.Read = []sandbox.Program{tool(t, "cat")}, nil
	spec.Links = []sandbox.Link{{Target: s.lent, HomeRel: ".config/tool/rc"}}
	if o := sandboxtest.Exec(t, s.sandbox, spec); string(o.Stdout) != "content" || o.Exit == 0 {
		t.Errorf("%q %s", o.Stdout, o.Stderr)
	}
}

// §10.2: full reaches a server on the network, and still no unix socket; none reaches nothing.
func Test_10_2_network(t *testing.T) {
	s := newScene(t)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer server.Close()
	for mode, want := range map[string]int{"none": 1, "": 1, "full": 0} {
		spec := s.spec("dial", server.Addr().String())
		spec.Network.Mode = mode
		if o := sandboxtest.Exec(t, s.sandbox, spec); o.Exit != want || o.Report.Network != map[string]string{"": "none"}[mode]+mode {
			t.Errorf("network %q: exit %d, %s; %+v", mode, o.Exit, o.Stderr, o.Report)
		}
		for _, attack := range []*sandbox.Spec{s.spec("unix", s.sock), s.spec("unix", "@"+filepath.Dir(s.land))} {
			attack.Network.Mode = mode
			if o := sandboxtest.Exec(t, s.sandbox, attack); o.Exit != 1 {
				t.Errorf("network %q: %v worked", mode, attack.Args)
			}
		}
	}
}

// §10.2: a tree that leads among the private directories by a link is refused when the jail is built.
func Test_10_2_private_directories_by_a_link(t *testing.T) {
	s := newScene(t)
	must(t, os.Mkdir(filepath.Dir(s.land)+"/scratch/7", 0o700))
	link := filepath.Dir(s.land) + "/link"
	must(t, os.Symlink("scratch/7", link))
	spec := s.spec("nothing")
	spec.Read = []string{link}
	if err := prepared(s.sandbox, spec); err == nil || err.Code != protocol.JailEscape {
		t.Errorf("%v", err)
	}
	// The place itself may be reached by a link: the trees above its real place count.
	base := t.TempDir()
	must(t, os.Mkdir(base+"/real", 0o700))
	must(t, os.Symlink("real", base+"/name"))
	spec = s.spec("nothing")
	spec.Read = []string{base + "/real"}
	if err := confining(t, sandbox.Options{Scratch: base + "/name/run"}).Check(spec); err == nil || err.Code != protocol.JailEscape {
		t.Errorf("%v", err)
	}
}

// §10.2: a program reaches its own standard files by name, and no list of them.
func Test_10_2_own_descriptors(t *testing.T) {
	s := newScene(t)
	spec := s.spec("")
	spec.Program, spec.Uses = tool(t, "sh"), []sandbox.Program{tool(t, "cat")}
	spec.Args = []string{"-eu", "-c", "cat /dev/stdin; echo a >/dev/stdout; echo b >/dev/fd/1; echo c >/proc/self/fd/1; echo d >/dev/stderr; ls /proc/self/fd 2>/dev/null || echo none"}
	spec.Stdin = []byte("in\n")
	if o := sandboxtest.Exec(t, s.sandbox, spec); string(o.Stdout) != "in\na\nb\nc\nnone\n" || string(o.Stderr) != "d\n" {
		t.Errorf("%q %q", o.Stdout, o.Stderr)
	}
}

// §6.9: a working directory that goes away ends nothing while the command runs, and refuses it before.
func Test_6_9_working_directory_removed(t *testing.T) {
	s := newScene(t)
	sub := s.land + "/sub"
	must(t, os.Mkdir(sub, 0o700))
	spec := s.spec("")
	spec.Program, spec.Uses, spec.Dir = tool(t, "sh"), []sandbox.Program{tool(t, "rmdir")}, sub
	spec.Args = []string{"-c", "rmdir " + sub + "; echo >new 2>/dev/null || exit 4"}
	if o := sandboxtest.Exec(t, s.sandbox, spec); o.Exit != 4 || o.TimedOut {
		t.Errorf("%+v %s", o, o.Stderr)
	}
	must(t, os.Mkdir(sub, 0o700))
	box, refused := s.sandbox.Prepare(spec)
	if refused != nil {
		t.Fatal(refused)
	}
	defer box.Close()
	must(t, os.Remove(sub))
	if _, refused := box.Run(context.Background()); refused == nil || refused.Code != protocol.JailEscape || refused.Details["path"] != sub {
		t.Errorf("%v", refused)
	}
}

// §6.9: what ended meanwhile is not counted, what is left is.
func Test_6_9_left_overs_counted(t *testing.T) {
	s := newScene(t)
	for script, want := range map[string]int{
		"sleep 0 & sleep 0 & wait":               0,
		"sleep 3607 & sleep 3607 & sleep 3607 &": 3,
	} {
		if o := s.shell(script, "sleep"); o.Report.Killed != want || o.Exit != 0 {
			t.Errorf("%s: killed %d, want %d; %+v", script, o.Report.Killed, want, o)
		}
	}
	if left := processes(t, "3607"); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
}
