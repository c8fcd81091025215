//go:build linux

package vault_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

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

// run starts a program and ends it with the test.
func run(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(c) })
}

func stop(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
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
