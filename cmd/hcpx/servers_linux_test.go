package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startServers starts what the programs talk to, on loopback, and answers with the words that stand for them in
// evals and packs.
func startServers(t *testing.T) map[string]string {
	t.Helper()
	http, host := webServer(t), "127.0.0.1:"
	vars := map[string]string{"${http}": http, "${httphost}": strings.TrimPrefix(http, "http://"), "${httpport}": strings.TrimPrefix(http, "http://"+host),
		"${other}": webServer(t)}
	if port := database(t); port != 0 {
		vars[`"${pgport}"`], vars["${pgport}"] = fmt.Sprint(port), fmt.Sprint(port)
	}
	return vars
}

// webServer serves the pages on a port of loopback.
func webServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(pages(t))
	t.Cleanup(s.Close)
	return s.URL
}

// pages are a page, and a repository by both ways that git knows over HTTP.
func pages(t *testing.T) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		fmt.Fprintln(w, "hello")
	})
	if root := bareRepository(t); root != "" {
		out, err := exec.Command("git", "--exec-path").Output()
		if err != nil {
			t.Fatal(err)
		}
		mux.Handle("/git/", &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Root: "/git", Stderr: io.Discard,
			Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root}})
		mux.Handle("/dumb/", http.StripPrefix("/dumb/", http.FileServer(http.Dir(root))))
	}
	return mux
}

// bareRepository makes smart.git with two commits in a directory of its own; "" without git.
func bareRepository(t *testing.T) string {
	t.Helper()
	if lookIn("git") == "" {
		return ""
	}
	dir := openDir(t)
	git := func(in string, args ...string) string {
		c := exec.Command("git", args...)
		c.Dir, c.Stdin = dir, strings.NewReader(in)
		c.Env = []string{"HOME=" + dir, "PATH=" + systemPath, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=a@example.org",
			"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=a@example.org"}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("", "init", "-q", "-b", "main", "work")
	for _, subject := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(dir, "work", subject), []byte(subject), 0o644); err != nil {
			t.Fatal(err)
		}
		git("", "-C", "work", "add", ".")
		git("", "-C", "work", "commit", "-q", "-m", subject)
	}
	git("", "clone", "-q", "--bare", "work", "smart.git")
	git("", "-C", "smart.git", "update-server-info")
	return dir
}

// postgresDir is where the database's own programs lie; "" when there are none.
func postgresDir() string {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// database starts a server that trusts everybody on a port of loopback; 0 when it is not installed.
func database(t *testing.T) int {
	t.Helper()
	return postgres(t, "trust", nil)
}

// postgres starts a server on a port of loopback, whose superuser is ada, with files and settings beside its data; 0 when it
// is not installed. It refuses to run as root.
func postgres(t *testing.T, auth string, files map[string]string, settings ...string) int {
	t.Helper()
	bin := postgresDir()
	if bin == "" {
		return 0
	}
	dir, uid := openDir(t), os.Geteuid()
	var as *syscall.SysProcAttr
	if uid == 0 {
		uid = 65534
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	(&world{t: t, uid: uid, dir: dir}).lay(dir, files)
	for name := range files {
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		t.Fatal(err)
	}
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(bin, name), args...)
		c.Dir, c.SysProcAttr = dir, as
		c.Env = []string{"HOME=" + dir, "PATH=" + bin + ":" + systemPath, "LANG=C.UTF-8"}
		return c
	}
	data := filepath.Join(dir, "data")
	initial := []string{"-D", data, "-U", "ada", "-A", auth, "--no-sync"}
	if files["password"] != "" {
		initial = append(initial, "--pwfile="+filepath.Join(dir, "password"))
	}
	if out, err := command("initdb", initial...).CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v %s", err, out)
	}
	port := freePort(t)
	start := []string{"-D", data, "-p", fmt.Sprint(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"}
	for _, s := range settings {
		start = append(start, "-c", strings.ReplaceAll(s, "DIR", dir))
	}
	server := command("postgres", start...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT) // at once; nothing is to be kept
		_ = server.Wait()
	})
	for range 600 {
		if command("pg_isready", "-q", "-h", "127.0.0.1", "-p", fmt.Sprint(port)).Run() == nil {
			return port
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the database does not start")
	return 0
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := url.Parse("tcp://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var port int
	if _, err := fmt.Sscan(u.Port(), &port); err != nil {
		t.Fatal(err)
	}
	return port
}
