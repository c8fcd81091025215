package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// hostWorld is a network in small: servers on the loopback, and a resolver that knows them by names.
type hostWorld struct {
	t       *testing.T
	place   string // a directory that every user can reach
	sandbox sandbox.Sandbox
	names   map[string][]string
	asked   chan string
}

// named is the name that leads to the loopback.
const named = "db.example.test"

func newHostWorld(t *testing.T, place string) *hostWorld {
	w := &hostWorld{t: t, place: place, asked: make(chan string, 1000), names: map[string][]string{named: {"127.0.0.1"}}}
	for _, dir := range []string{"land", "scratch"} {
		must(t, os.MkdirAll(filepath.Join(place, dir), 0o700))
	}
	o := postureOf(t).options
	o.Scratch, o.Lookup = place+"/scratch", w.lookup
	w.sandbox = confining(t, o)
	return w
}

// inPosture is a directory for the tests in one posture.
func inPosture(t *testing.T, place string, p posture) string {
	t.Helper()
	place += "/" + p.name
	must(t, os.Mkdir(place, 0o755))
	return place
}

func (w *hostWorld) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	w.asked <- name
	var all []netip.Addr
	for _, s := range w.names[name] {
		all = append(all, netip.MustParseAddr(s))
	}
	if all == nil {
		return nil, &net.DNSError{Name: name, IsNotFound: true}
	}
	return all, nil
}

// hosts lists the name and the literal for each port.
func hosts(ports ...string) []string {
	var all []string
	for _, port := range ports {
		all = append(all, named+":"+port, "127.0.0.1:"+port)
	}
	return all
}

func (w *hostWorld) spec(list []string, p sandbox.Program, args ...string) *sandbox.Spec {
	return &sandbox.Spec{
		Program: p, Args: args, Write: []string{w.place + "/land"}, Dir: w.place + "/land",
		Network: sandbox.Network{Mode: "hosts", Hosts: list}, Limits: sandbox.Limits{Wall: time.Minute, Grace: 100 * time.Millisecond},
	}
}

// web is a server on the loopback that says where it was reached.
func (w *hostWorld) web() (port string) {
	w.t.Helper()
	return w.serve(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if to := in.URL.Query().Get("to"); to != "" {
			http.Redirect(out, in, to, http.StatusFound)
			return
		}
		fmt.Fprintf(out, "host %s\n", in.Host)
	}))
}

func (w *hostWorld) serve(h http.Handler) (port string) {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(w.t, err)
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(listener) }()
	w.t.Cleanup(func() { _ = server.Close() })
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}

// found is a program outside of PATH, or the test is skipped.
func found(t *testing.T, name string, places ...string) sandbox.Program {
	t.Helper()
	for _, place := range places {
		if at, _ := filepath.Glob(place); len(at) > 0 {
			return sandbox.Program{Name: name, Path: at[len(at)-1]}
		}
	}
	return tool(t, name)
}

// gets runs the command and holds what it prints against what it must.
func (w *hostWorld) gets(spec *sandbox.Spec, want string) {
	w.t.Helper()
	o := sandboxtest.Exec(w.t, w.sandbox, spec)
	if o.Exit != 0 || !strings.Contains(string(o.Stdout), want) {
		w.t.Errorf("%s %v: exit %d, %q, want %q\n%s\ndenied %q", spec.Program.Name, spec.Args, o.Exit, o.Stdout, want, o.Stderr, o.Denied)
	}
	if o.Report.Network != "hosts" {
		w.t.Errorf("the report names network %q", o.Report.Network)
	}
}

// What the processes of the users are told.
const (
	sshVar     = "HOSTS_SSH"
	clientsVar = "HOSTS_CLIENTS"
)

// §10.2: programs reach what is listed, by name: those that know a proxy, and those that know none.
func Test_10_2_hosts_programs(t *testing.T) {
	if os.Getenv(sshVar) == "" {
		dir, err := os.MkdirTemp("", "hosts")
		must(t, err)
		t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
		must(t, os.Chmod(dir, 0o755))
		w := newHostWorld(t, dir)
		t.Setenv(sshVar, w.sshServer())
		t.Setenv(clientsVar, w.clients())
	}
	redteamtest.Users(t, func(t *testing.T, place string) {
		programs := map[string]func(*hostWorld){
			"curl": (*hostWorld).curl, "git": (*hostWorld).git, "psql": (*hostWorld).psql, "ssh": (*hostWorld).ssh, "python": (*hostWorld).python, "node": (*hostWorld).node,
			"go": func(w *hostWorld) { w.client("go") }, "musl": func(w *hostWorld) { w.client("musl") },
		}
		for _, p := range looked() {
			place := inPosture(t, place, p)
			for name, run := range programs {
				t.Run(p.name+"/"+name, func(t *testing.T) { run(newHostWorld(t, place)) })
			}
			delete(programs, "psql") // once is enough for servers of their own
			delete(programs, "git")
		}
	})
}

func (w *hostWorld) curl() {
	port := w.web()
	url, curl := "http://"+named+":"+port+"/", tool(w.t, "curl")
	for name, args := range map[string][]string{
		"by the proxy":           nil,
		"by its own resolver":    {"--noproxy", "*"},
		"by IPv4":                {"--noproxy", "*", "-4"},
		"by a tunnel":            {"--proxytunnel"},
		"by SOCKS":               {"-x", "socks5h://127.0.0.1:61080"},
		"by SOCKS, own resolver": {"-x", "socks5://127.0.0.1:61080"},
	} {
		w.t.Run(name, func(t *testing.T) {
			inner := *w
			inner.t = t
			inner.gets(inner.spec(hosts(port), curl, append([]string{"-sS", "--max-time", "20", url}, args...)...), "host "+named+":"+port)
		})
	}
	w.gets(w.spec([]string{"localhost:" + port}, curl, "-sS", "--noproxy", "*", "http://localhost:"+port+"/"), "host localhost:"+port)
	w.gets(w.spec([]string{"127.0.0.1:" + port}, curl, "-sS", "--noproxy", "*", "http://127.0.0.1:"+port+"/"), "host 127.0.0.1:"+port)
}

// git clones over http from a directory that is served as files.
func (w *hostWorld) git() {
	git := tool(w.t, "git")
	source := w.place + "/source"
	run := func(args ...string) {
		c := exec.Command(git.Path, args...)
		c.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := c.CombinedOutput(); err != nil {
			w.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run("init", "-q", source)
	must(w.t, os.WriteFile(source+"/file", []byte("cloned\n"), 0o644))
	run("-C", source, "add", "file")
	run("-C", source, "commit", "-q", "-m", "first")
	run("-C", source, "update-server-info")
	port := w.serve(http.FileServer(http.Dir(source)))
	core, err := exec.Command(git.Path, "--exec-path").Output()
	must(w.t, err)
	for name, env := range map[string]string{"by the proxy": "X=y", "by its own resolver": "GIT_CONFIG_PARAMETERS='http.proxy='"} {
		spec := w.spec(hosts(port), tool(w.t, "sh"), "-c", "rm -rf copy; git clone -q http://"+named+":"+port+"/.git copy && cat copy/file")
		spec.Uses = []sandbox.Program{git, tool(w.t, "cat"), tool(w.t, "rm")}
		spec.UseDirs = []string{strings.TrimSpace(string(core))}
		spec.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", env}
		w.t.Run(name, func(t *testing.T) {
			inner := *w
			inner.t = t
			inner.gets(spec, "cloned\n")
		})
	}
}

// server starts a program that serves until the test ends, as an ordinary user where it wants one.
func (w *hostWorld) server(uid int, program string, args ...string) {
	c := exec.Command(program, args...)
	var out bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = w.place, &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if uid != os.Getuid() {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	must(w.t, c.Start())
	w.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGINT)
		_ = c.Wait()
		if w.t.Failed() {
			w.t.Logf("%s: %s", program, out.String())
		}
	})
}

// free is a port of the loopback that nobody has, and up waits until somebody has.
func free(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func (w *hostWorld) up(port string) {
	for range 600 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.t.Fatal("the server does not begin")
}

func (w *hostWorld) psql() {
	const bin = "/usr/lib/postgresql/*/bin/"
	initdb, postgres := found(w.t, "initdb", bin+"initdb"), found(w.t, "postgres", bin+"postgres")
	uid := os.Getuid()
	data := w.place + "/data"
	must(w.t, os.Mkdir(data, 0o700))
	if uid == 0 { // the server does not run as root
		uid = 65534
		must(w.t, os.Chown(data, uid, uid))
	}
	c := exec.Command(initdb.Path, "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
	c.Dir = data
	if uid != os.Getuid() {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("initdb: %v\n%s", err, out)
	}
	port := free(w.t)
	w.server(uid, postgres.Path, "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off")
	w.up(port)
	psql := found(w.t, "psql", bin+"psql")
	args := []string{"-X", "-A", "-t", "-w", "-h", named, "-p", port, "-U", "tester", "-d", "postgres", "-c", "select 6*7"}
	spec := w.spec(hosts(port), psql, args...)
	for range 50 { // it answers before it takes anybody in
		if o := sandboxtest.Exec(w.t, w.sandbox, spec); !bytes.Contains(o.Stderr, []byte("starting up")) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.gets(spec, "42\n")
	if o := sandboxtest.Exec(w.t, w.sandbox, w.spec(hosts("1"), psql, args...)); o.Exit == 0 || !slices.Contains(o.Denied, "connect 127.0.0.1:"+port+": loopback address") {
		w.t.Errorf("another port: exit %d, denied %q", o.Exit, o.Denied)
	}
}

// sshServer serves this user, who may be another one than the command's, and answers port, user and key. An ordinary
// user's own server would take no one in whose account is locked.
func (w *hostWorld) sshServer() string {
	sshd, keygen := found(w.t, "sshd", "/usr/sbin/sshd"), tool(w.t, "ssh-keygen")
	dir := w.place + "/ssh"
	must(w.t, os.Mkdir(dir, 0o700))
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command(keygen.Path, "-q", "-t", "ed25519", "-N", "", "-f", dir+"/"+key).CombinedOutput(); err != nil {
			w.t.Fatalf("%v\n%s", err, out)
		}
	}
	port := free(w.t)
	must(w.t, os.WriteFile(dir+"/config", []byte(strings.Join([]string{"Port " + port, "ListenAddress 127.0.0.1", "HostKey " + dir + "/host",
		"AuthorizedKeysFile " + dir + "/user.pub", "PidFile none", "UsePAM no", "StrictModes no", "PasswordAuthentication no",
		"PermitRootLogin prohibit-password", "Subsystem sftp internal-sftp", ""}, "\n")), 0o600))
	if os.Getuid() == 0 {
		must(w.t, os.MkdirAll("/run/sshd", 0o755)) // where it locks itself in
	}
	w.server(os.Getuid(), sshd.Path, "-D", "-e", "-f", dir+"/config")
	w.up(port)
	who, err := exec.Command("id", "-un").Output()
	must(w.t, err)
	key, err := os.ReadFile(dir + "/user")
	must(w.t, err)
	return port + "," + strings.TrimSpace(string(who)) + "," + string(key)
}

func (w *hostWorld) ssh() {
	ssh, server := tool(w.t, "ssh"), strings.SplitN(os.Getenv(sshVar), ",", 3)
	port, who, land := server[0], server[1], w.place+"/land"
	must(w.t, os.WriteFile(land+"/key", []byte(server[2]), 0o600))
	// A session for files needs no shell, and ends with its input.
	spec := w.spec(hosts(port), ssh, "-F", "none", "-i", land+"/key", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=accept-new",
		"-o", "UserKnownHostsFile="+land+"/known", "-o", "ConnectTimeout=20", "-p", port, who+"@"+named, "-s", "sftp")
	spec.Links = []sandbox.Link{{Target: "/etc/passwd"}} // it asks who runs it
	w.gets(spec, "")
	known, err := os.ReadFile(land + "/known")
	if err != nil || !strings.Contains(string(known), named) {
		w.t.Errorf("%q, %v", known, err)
	}
}

func (w *hostWorld) python() {
	port := w.web()
	python := found(w.t, "python3", "/usr/bin/python3")
	w.gets(w.spec(hosts(port), python, "-S", "-c", `
import socket
s = socket.create_connection(("`+named+`", `+port+`), 20)
s.sendall(b"GET / HTTP/1.0\r\nHost: direct\r\n\r\n")
print(s.makefile().read())
`), "host direct")
	w.gets(w.spec(hosts(port), python, "-c", `
import urllib.request
print(urllib.request.urlopen("http://`+named+`:`+port+`/", timeout=20).read().decode())
`), "host "+named+":"+port)
	w.gets(w.spec(hosts(port), python, "-c", `
import asyncio
async def main():
    r, w = await asyncio.open_connection("`+named+`", `+port+`)
    w.write(b"GET / HTTP/1.0\r\nHost: direct\r\n\r\n")
    print((await r.read()).decode())
asyncio.run(main())
`), "host direct")
}

// node has two resolvers: that of the C library, and one of its own, which looks at who answers.
func (w *hostWorld) node() {
	port := w.web()
	for _, how := range []string{"lookup", "resolve4"} {
		w.gets(w.spec(hosts(port), tool(w.t, "node"), "-e", `
const [dns, net] = [require("dns"), require("net")];
dns.`+how+`("`+named+`", (err, got) => {
	if (err) throw err;
	const s = net.connect(`+port+`, [got].flat()[0], () => s.write("GET / HTTP/1.0\r\nHost: direct\r\n\r\n"));
	s.pipe(process.stdout);
});`), "host direct")
	}
}

// goClient resolves by itself.
const goClient = `package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	c, err := net.Dial("tcp", os.Args[1]+":"+os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprint(c, "GET / HTTP/1.0\r\nHost: direct\r\n\r\n")
	_, _ = io.Copy(os.Stdout, c)
}
`

// muslClient is for another C library, whose resolver asks by datagrams and looks at who answers.
const muslClient = `
#include <netdb.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/socket.h>
int main(int n, char **a) {
	struct addrinfo want = { .ai_socktype = SOCK_STREAM }, *got;
	int no = getaddrinfo(a[1], a[2], &want, &got);
	if (no) { fprintf(stderr, "%s\n", gai_strerror(no)); return 1; }
	for (; got; got = got->ai_next) {
		int s = socket(got->ai_family, got->ai_socktype, got->ai_protocol);
		if (connect(s, got->ai_addr, got->ai_addrlen)) { perror("connect"); continue; }
		if (write(s, "GET / HTTP/1.0\r\nHost: direct\r\n\r\n", 32) != 32) return 2;
		char buf[4096];
		for (int k; (k = read(s, buf, sizeof buf)) > 0;) fwrite(buf, 1, k, stdout);
		return 0;
	}
	return 3;
}
`

// clients builds static programs that know no proxy.
func (w *hostWorld) clients() string {
	for name, source := range map[string]string{"client.go": goClient, "client.c": muslClient} {
		must(w.t, os.WriteFile(w.place+"/"+name, []byte(source), 0o644))
	}
	build := exec.Command(tool(w.t, "go").Path, "build", "-o", w.place+"/go", w.place+"/client.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off")
	for _, c := range []*exec.Cmd{build, exec.Command(tool(w.t, "musl-gcc").Path, "-static", "-o", w.place+"/musl", w.place+"/client.c")} {
		if out, err := c.CombinedOutput(); err != nil {
			w.t.Fatalf("%v\n%s", err, out)
		}
	}
	return w.place
}

func (w *hostWorld) client(name string) {
	port := w.web()
	w.gets(w.spec(hosts(port), sandbox.Program{Name: name, Path: os.Getenv(clientsVar) + "/" + name}, named, port), "host direct")
}

// §10.2: a list of hosts is kept or refused, never kept in part.
func Test_10_2_hosts_lists(t *testing.T) {
	w := newHostWorld(t, t.TempDir())
	self, err := os.Executable()
	must(t, err)
	program := sandbox.Program{Name: "self", Path: self}
	for entry, good := range map[string]bool{"api.example.test:443": true, "*.example.test:443": false, "api.example.test": false, "127.0.0.1:53": false,
		"localhost:61080": false, "[::1]:53": false, "10.0.0.5:53": true, "0.0.0.0:80": false} {
		err := w.sandbox.Check(w.spec([]string{"web.example.test:80", entry}, program))
		if good != (err == nil) || err != nil && err.Details["rule"] != "network-hosts" {
			t.Errorf("%s: %v", entry, err)
		}
	}
	for name, spoil := range map[string]func(*sandbox.Kernel){"notify": func(k *sandbox.Kernel) { k.Notify = false }, "getfd": func(k *sandbox.Kernel) { k.GetFd = false }} {
		k := able()
		spoil(&k)
		s := sandbox.New(sandbox.Options{Scratch: t.TempDir() + "/scratch", Kernel: &k, Accept: []string{"metadata"}})
		if err := s.Check(w.spec([]string{"api.example.test:443"}, program)); err == nil || err.Details["rule"] != "network-hosts" {
			t.Errorf("%s: %v", name, err)
		}
		if k.Notify {
			if err := s.Check(&sandbox.Spec{Program: program}); err != nil {
				t.Errorf("%s, network none: %v", name, err)
			}
		}
	}
}

// §10.2: the variables of the proxy, and nothing that takes a host out of it.
func Test_10_2_hosts_environment(t *testing.T) {
	s := sandbox.New(sandbox.Options{})
	spec := &sandbox.Spec{Network: sandbox.Network{Mode: "hosts"}, Env: []string{"A=b"}}
	env := s.Environ(spec, "/private")
	for _, name := range []string{"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		if !slices.Contains(env, name+"=http://127.0.0.1:61080") {
			t.Errorf("%s is missing in %v", name, env)
		}
	}
	for _, mode := range []string{"none", "full"} {
		spec.Network.Mode = mode
		if strings.Contains(strings.ToLower(strings.Join(s.Environ(spec, "/private"), " ")), "proxy") {
			t.Errorf("network %s: %v", mode, s.Environ(spec, "/private"))
		}
	}
}

// §6.9: what a run opened ends with it: connections that wait, tunnels, questions for names.
func Test_10_2_hosts_end_with_the_run(t *testing.T) {
	w := newHostWorld(t, t.TempDir())
	reached := make(chan bool, 10)
	port := w.serve(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		reached <- true
		<-in.Context().Done()
	}))
	curl := tool(t, "curl")
	fds := func() int { list, err := os.ReadDir("/proc/self/fd"); must(t, err); return len(list) }
	run := func(args ...string) {
		t.Helper()
		box, refused := w.sandbox.Prepare(w.spec(hosts(port), curl, append([]string{"-sS", "http://" + named + ":" + port}, args...)...))
		if refused != nil {
			t.Fatal(refused)
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() { <-reached; cancel() }()
		begin := time.Now()
		o, refused := box.Run(ctx)
		if refused != nil || !o.Canceled || time.Since(begin) > 30*time.Second {
			t.Errorf("%+v, %v", o, refused)
		}
		must(t, box.Close())
	}
	run()
	before := fds()
	for range 3 {
		run()
		run("--noproxy", "*")
		run("--proxytunnel")
	}
	for range 100 { // the server's side closes on its own, and the pipes that Go copies through with the collector
		runtime.GC()
		if fds() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d descriptors, %d before", fds(), before)
}

// §6.9: a connect that nobody answers waits no longer than the run.
func Test_10_2_hosts_waiting_connect(t *testing.T) {
	w := newHostWorld(t, t.TempDir())
	self, err := os.Executable()
	must(t, err)
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(listener)
	must(t, unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(listener, 0))
	name, err := unix.Getsockname(listener)
	must(t, err)
	at := fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	for { // until the queue is full, and one more has to wait
		c, err := net.DialTimeout("tcp", at, 300*time.Millisecond)
		if err != nil {
			break
		}
		defer c.Close()
	}
	before := runtime.NumGoroutine()
	for range 3 {
		spec := w.spec([]string{at}, sandbox.Program{Name: "leaver", Path: self}, hostsArg, "connect", at)
		spec.Limits.Wall = 500 * time.Millisecond
		if o := sandboxtest.Exec(t, w.sandbox, spec); !o.TimedOut || o.Duration > 20*time.Second {
			t.Errorf("%+v", o)
		}
	}
	for range 300 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
