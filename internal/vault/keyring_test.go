//go:build linux

package vault_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"hcpx/internal/protocol"
	"hcpx/internal/vault"
	"hcpx/internal/vault/vaulttest"
)

// desktop is a session bus of its own with a real Secret Service, whose keyrings lie in a directory of the test.
type desktop struct {
	address string
	env     []string
}

// startBus starts a session bus that starts no service by itself.
func startBus(t *testing.T) *desktop {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "bus.conf")
	text := `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path=` + dir + `/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &desktop{env: append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_DATA_HOME="+dir+"/data", "XDG_CONFIG_HOME="+dir+"/config")}
	bus := exec.Command(program(t, "dbus-daemon"), "--config-file="+config, "--nofork", "--print-address")
	bus.Env = d.env
	out, err := bus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	run(t, bus)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	d.address = strings.TrimSpace(line)
	d.env = append(d.env, "DBUS_SESSION_BUS_ADDRESS="+d.address)
	return d
}

// startService starts gnome-keyring; with a passphrase it has an unlocked login keyring, without one it has none.
func (d *desktop) startService(t *testing.T, passphrase string) *exec.Cmd {
	t.Helper()
	args := []string{"--foreground", "--components=secrets"}
	if passphrase != "" {
		args = append(args, "--unlock")
	}
	service := exec.Command(program(t, "gnome-keyring-daemon"), args...)
	service.Env = d.env
	service.Stdin = strings.NewReader(passphrase)
	run(t, service)
	conn := d.connect(t)
	for i := 0; ; i++ {
		var owned bool
		if err := conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, "org.freedesktop.secrets").Store(&owned); err != nil {
			t.Fatal(err)
		}
		var path dbus.ObjectPath = "/"
		if owned {
			_ = conn.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").Call("org.freedesktop.Secret.Service.ReadAlias", 0, "default").Store(&path)
		}
		if owned && (passphrase == "" || path != "/") {
			return service
		}
		if i == 500 {
			t.Fatal("gnome-keyring does not come up")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (d *desktop) connect(t *testing.T) *dbus.Conn {
	t.Helper()
	conn, err := dbus.Connect(d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// lock locks the keyring, as a desktop does when its user goes away.
func (d *desktop) lock(t *testing.T) {
	t.Helper()
	service := d.connect(t).Object("org.freedesktop.secrets", "/org/freedesktop/secrets")
	var path, prompt dbus.ObjectPath
	var done []dbus.ObjectPath
	if err := service.Call("org.freedesktop.Secret.Service.ReadAlias", 0, "default").Store(&path); err != nil {
		t.Fatal(err)
	}
	if err := service.Call("org.freedesktop.Secret.Service.Lock", 0, []dbus.ObjectPath{path}).Store(&done, &prompt); err != nil || len(done) != 1 {
		t.Fatal(done, err)
	}
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name + " is not installed")
	}
	return path
}

func Test_8_3_Keyring(t *testing.T) {
	d := startBus(t)
	d.startService(t, "login passphrase")
	vaulttest.Run(t, func(t *testing.T) vaulttest.Place {
		o := home(t)
		o.Bus = d.address
		return vaulttest.Place{Kind: vault.Keyring, Open: func() vault.Store { return vault.Open(o) }}
	})
}

// §8.3: without DBUS_SESSION_BUS_ADDRESS the bus is the one at its place in the login's runtime directory, if a socket of this
// user is there; with it, no other is tried.
func Test_8_3_TheBusOfTheLogin(t *testing.T) {
	d, _, o := withKeyring(t)
	set(t, vault.Open(o), "name", canary)
	path, _ := strings.CutPrefix(strings.Split(d.address, ",")[0], "unix:path=")
	o.Bus, o.Runtime = "", filepath.Dir(path)
	kept(t, o, "name", vault.Keyring, canary)
	set(t, vault.Open(o), "another", canary)
	kept(t, o, "another", vault.Keyring, canary)
	odd := filepath.Join(t.TempDir(), "a,b;c=d%20e")
	must(t, os.Mkdir(odd, 0o700))
	must(t, os.Symlink(path, filepath.Join(odd, "bus")))
	for name, at := range map[string]string{"none": t.TempDir(), "relative": "run", "a link": odd, "no socket": fileAt(t, "bus")} {
		o.Runtime = at
		if kind := vault.Open(o).Kind(t.Context()); kind != vault.File {
			t.Errorf("%s: %s", name, kind)
		}
	}
	o.Runtime = odd
	must(t, os.Remove(filepath.Join(odd, "bus")))
	must(t, os.Link(path, filepath.Join(odd, "bus"))) // the same socket, by a name that an address must escape
	kept(t, o, "name", vault.Keyring, canary)
	o.Bus = "disabled:"
	set(t, vault.Open(o), "by choice", canary)
	kept(t, o, "by choice", vault.File, canary)
}

// fileAt is a directory with a plain file of that name.
func fileAt(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	return dir
}

// withKeyring is a home on a desktop whose keyring is open.
func withKeyring(t *testing.T) (*desktop, *exec.Cmd, vault.Options) {
	d := startBus(t)
	service := d.startService(t, "login passphrase")
	o := home(t)
	o.Bus = d.address
	return d, service, o
}

func Test_8_3_KeyringKilledAtEveryPoint(t *testing.T) {
	for _, c := range []struct{ name, what, old string }{
		{"first", "set", ""}, {"delete", "delete", "the-old-value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 3 {
				d, service, _ := withKeyring(t)
				if !deaths(t, d.address, c.what, c.old, func() bool { return ended(service.Process.Pid) }) {
					return
				}
			}
			t.Error("the keyring ended each time")
		})
	}
}

// ended says whether a child of this process has ended, which it may be about to.
func ended(pid int) bool {
	for range 20 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func Test_8_3_Keyring50ProcessesWriteAtOnce(t *testing.T) {
	d, _, _ := withKeyring(t)
	fifty(t, d.address)
}

// fails wants an error of which the store did nothing.
func fails(t *testing.T, err *protocol.Error, says, hint string) {
	t.Helper()
	if err == nil || err.Code != protocol.BindingFailed || !strings.Contains(err.Message, says) || !strings.HasPrefix(err.Hint, hint) {
		t.Errorf("%v, hint %q, want %q", err, hintOf(err), says)
	}
	if err != nil && strings.Contains(err.Message+err.Hint, "canary") {
		t.Errorf("it shows the value: %v", err)
	}
}

// kept wants a name where it was put.
func kept(t *testing.T, o vault.Options, name, kind, value string) {
	t.Helper()
	s := vault.Open(o)
	if where, err := s.Where(t.Context(), name); err != nil || where != kind {
		t.Errorf("%s is in %q, %v; want %q", name, where, err, kind)
	}
	if got := have(t, s, name); got != value {
		t.Errorf("%s is %q, want %q", name, got, value)
	}
}

// §8.3: a keyring that comes and goes. What was put in one place is looked for there, and nowhere else.
func Test_8_3_AKeyringThatComesAndGoes(t *testing.T) {
	_, _, desk := withKeyring(t)
	ssh := desk
	ssh.Bus = ""
	set(t, vault.Open(ssh), "by ssh", canary)
	kept(t, ssh, "by ssh", vault.File, canary)
	set(t, vault.Open(desk), "at the desk", canary+"-desk")
	kept(t, desk, "at the desk", vault.Keyring, canary+"-desk")

	kept(t, desk, "by ssh", vault.File, canary)
	set(t, vault.Open(desk), "by ssh", "changed at the desk") // stays where it was put
	kept(t, ssh, "by ssh", vault.File, "changed at the desk")

	s := vault.Open(ssh)
	const says, hint = "in the keyring of the OS, which cannot be reached from here: this login has no session bus", "export DBUS_SESSION_BUS_ADDRESS="
	_, found, err := s.Get(t.Context(), "at the desk")
	fails(t, err, says, hint)
	fails(t, s.Set(t.Context(), "at the desk", []byte(canary)), says, hint)
	fails(t, s.Delete(t.Context(), "at the desk"), says, hint)
	fails(t, s.Check(t.Context()), says, hint)
	if found {
		t.Error("found without its keyring")
	}
	set(t, s, "new by ssh", "value by ssh") // others go on
	kept(t, ssh, "new by ssh", vault.File, "value by ssh")
	kept(t, desk, "at the desk", vault.Keyring, canary+"-desk")

	if left, err := s.Forget(t.Context(), "at the desk"); err != nil || left != vault.Keyring {
		t.Errorf("%q, %v", left, err)
	}
	set(t, s, "at the desk", "anew by ssh")
	kept(t, desk, "at the desk", vault.File, "anew by ssh") // the one that is left in the keyring is not looked at
}

// §8.3: a locked keyring is an error with its sentence; no place is made for a new name meanwhile.
func Test_8_3_ALockedKeyring(t *testing.T) {
	d, _, o := withKeyring(t)
	s := vault.Open(o)
	set(t, s, "name", canary)
	d.lock(t)
	before := tree(t, filepath.Dir(filepath.Dir(o.Dir)))
	const says, hint = "is locked, and no other place is tried", "secret-tool search --unlock "
	_, found, err := s.Get(t.Context(), "name")
	fails(t, err, says, hint)
	fails(t, s.Set(t.Context(), "name", []byte(canary)), says, hint)
	fails(t, s.Set(t.Context(), "new", []byte(canary)), says, hint)
	fails(t, s.Delete(t.Context(), "name"), says, hint)
	fails(t, s.Check(t.Context()), says, hint)
	if found || s.Kind(t.Context()) != vault.Keyring {
		t.Errorf("found %v, kind %q", found, s.Kind(t.Context()))
	}
	if after := tree(t, filepath.Dir(filepath.Dir(o.Dir))); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
	o.Bus = ""
	set(t, vault.Open(o), "new", "in the vault by choice") // what the sentence's reader may decide
	kept(t, o, "new", vault.File, "in the vault by choice")
}

// §8.3: what is in the keyring outlives the service, and is the same after the keyring was unlocked again.
func Test_8_3_AKeyringStartedAgain(t *testing.T) {
	d, service, o := withKeyring(t)
	set(t, vault.Open(o), "name", canary)
	stop(service)
	_, _, err := vault.Open(o).Get(t.Context(), "name")
	fails(t, err, "the session bus has no Secret Service", "export DBUS_SESSION_BUS_ADDRESS=")
	again := d.startService(t, "login passphrase")
	kept(t, o, "name", vault.Keyring, canary)
	must(t, again.Process.Signal(syscall.SIGSTOP))
	defer again.Process.Signal(syscall.SIGCONT)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, _, err = vault.Open(o).Get(ctx, "name")
	fails(t, err, "did not answer. No other place is tried", "hcpx doctor")
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	fails(t, vault.Open(o).Set(ctx, "new", []byte(canary)), "did not answer", "hcpx doctor") // not the vault
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, _, err := vault.Open(o).Get(ctx, "name"); err == nil || err.Code != protocol.Canceled {
		t.Error(err)
	}
	if where, err := vault.Open(o).Where(t.Context(), "new"); err != nil || where != "" {
		t.Errorf("%q, %v", where, err)
	}
}

// §8.3: where no keyring was ever made, and where nobody serves one, there is none.
func Test_8_3_NoKeyring(t *testing.T) {
	bare := startBus(t)
	served := startBus(t)
	served.startService(t, "")
	gone := filepath.Join(t.TempDir(), "bus")
	mark := filepath.Join(t.TempDir(), "started")
	for name, address := range map[string]string{
		"no bus": "", "no service": bare.address, "no collection": served.address, "no socket": "unix:path=" + gone,
		"a program to start": "unixexec:path=/usr/bin/touch,argv1=" + mark, "a host": "tcp:host=127.0.0.1,port=9", "autolaunch": "autolaunch:", "nonsense": ";;=,unix:,unix:path=",
	} {
		t.Run(name, func(t *testing.T) {
			o := home(t)
			o.Bus = address
			if kind := vault.Open(o).Kind(t.Context()); kind != vault.File {
				t.Errorf("kind %q", kind)
			}
			set(t, vault.Open(o), "name", canary)
			kept(t, o, "name", vault.File, canary)
		})
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("an address had a program started")
	}
}

// §8.3: a second bus in a list of addresses counts, and an escaped path is read.
func Test_8_3_AddressesOfABus(t *testing.T) {
	_, _, o := withKeyring(t)
	path, _, _ := strings.Cut(strings.TrimPrefix(o.Bus, "unix:path="), ",")
	o.Bus = "tcp:host=127.0.0.1,port=9;unix:path=/nonexistent;unix:path=" + strings.ReplaceAll(path, "/", "%2f")
	if kind := vault.Open(o).Kind(t.Context()); kind != vault.Keyring {
		t.Errorf("kind %q", kind)
	}
}

// §8.3: two items of one name are not chosen between.
func Test_8_3_TwoItemsOfOneName(t *testing.T) {
	d, _, o := withKeyring(t)
	s := vault.Open(o)
	set(t, s, "name", canary)
	conn := d.connect(t)
	service := conn.Object("org.freedesktop.secrets", "/org/freedesktop/secrets")
	var none dbus.Variant
	var session, collection, made, prompt dbus.ObjectPath
	must(t, service.Call("org.freedesktop.Secret.Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&none, &session))
	must(t, service.Call("org.freedesktop.Secret.Service.ReadAlias", 0, "default").Store(&collection))
	id := strings.TrimPrefix(strings.Split(string(read(t, filepath.Join(o.Dir, "record"))), "\n")[0], "hcpx-secrets 1 ")
	must(t, conn.Object("org.freedesktop.secrets", collection).Call("org.freedesktop.Secret.Collection.CreateItem", 0,
		map[string]dbus.Variant{"org.freedesktop.Secret.Item.Label": dbus.MakeVariant("other"),
			"org.freedesktop.Secret.Item.Attributes": dbus.MakeVariant(map[string]string{"application": "hcpx", "store": id, "name": "name"})},
		struct {
			Session           dbus.ObjectPath
			Parameters, Value []byte
			ContentType       string
		}{session, nil, []byte("another value"), "text/plain"}, false).Store(&made, &prompt))
	_, _, err := s.Get(t.Context(), "name")
	fails(t, err, "more than one item", "secret-tool search --all ")
	fails(t, s.Set(t.Context(), "name", []byte("third-value")), "more than one item", "secret-tool search --all ")
}

// §8.3: two stores of one user share a keyring, and no name.
func Test_8_3_TwoStoresOneKeyring(t *testing.T) {
	_, _, o := withKeyring(t)
	other := home(t)
	other.Bus = o.Bus
	set(t, vault.Open(o), "name", "of the one")
	set(t, vault.Open(other), "name", "of the other")
	kept(t, o, "name", vault.Keyring, "of the one")
	if err := vault.Open(other).Delete(t.Context(), "name"); err != nil {
		t.Fatal(err)
	}
	kept(t, o, "name", vault.Keyring, "of the one")
}

// §8.3: what a person removed from the keyring by hand is not found, and can be put again.
func Test_8_3_RemovedByHand(t *testing.T) {
	d, _, o := withKeyring(t)
	set(t, vault.Open(o), "name", canary)
	service := d.connect(t).Object("org.freedesktop.secrets", "/org/freedesktop/secrets")
	var free, shut []dbus.ObjectPath
	must(t, service.Call("org.freedesktop.Secret.Service.SearchItems", 0, map[string]string{"application": "hcpx"}).Store(&free, &shut))
	for _, path := range free {
		must(t, d.connect(t).Object("org.freedesktop.secrets", path).Call("org.freedesktop.Secret.Item.Delete", 0).Err)
	}
	kept(t, o, "name", vault.Keyring, "")
	set(t, vault.Open(o), "name", "again")
	kept(t, o, "name", vault.Keyring, "again")
}
