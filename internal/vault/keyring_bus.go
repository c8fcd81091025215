//go:build !darwin && !windows

package vault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
)

// The Secret Service of the session bus. It is asked only what needs no person: where it would open a dialog the
// answer is an error, since an agent's command must not wait for one.
const (
	serviceName = "org.freedesktop.secrets"
	servicePath = "/org/freedesktop/secrets"
	serviceFace = "org.freedesktop.Secret.Service"
	collection  = "org.freedesktop.Secret.Collection"
	item        = "org.freedesktop.Secret.Item"
	nowhere     = dbus.ObjectPath("/") // "no prompt", "no such collection"
)

// busPatience bounds a whole conversation, the start of the service by the bus included.
const busPatience = 20 * time.Second

// unlockHint is the command that opens the service's own dialog.
const unlockHint = "secret-tool search --unlock application hcpx"

type bus struct{ address, runtime string }

func newRing(o Options) ring { return bus{o.Bus, o.Runtime} }

// where is the address of the session bus: the one that was told, else the one at its place in the runtime directory of the
// login, if that is a socket of this user.
func (b bus) where() string {
	if b.address != "" || !filepath.IsAbs(b.runtime) {
		return b.address
	}
	path := filepath.Join(b.runtime, "bus")
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid() {
		return ""
	}
	return "unix:path=" + url.PathEscape(path)
}

// reachHint is where the bus of a desktop session usually is, for a login that was not told.
func reachHint() string {
	return fmt.Sprintf("export DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/%d/bus", os.Geteuid())
}

// conversation is a connection with a session of the Secret Service.
type conversation struct {
	conn    *dbus.Conn
	limit   context.Context // the caller's, and busPatience
	end     func()
	session dbus.ObjectPath
}

// wire is struct Secret of the service.
type wire struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string
}

// reach connects to a socket of this machine and nothing else: an address of a bus can also name a host or a
// program to start.
func (b bus) reach(ctx context.Context) (session, string, *protocol.Error) {
	address := b.where()
	if address == "" {
		return nil, "this login has no session bus", nil
	}
	limit, cancel := context.WithTimeout(ctx, busPatience)
	c := &conversation{limit: limit}
	raw := dial(limit, address)
	if raw == nil {
		defer cancel()
		if limit.Err() != nil {
			return nil, "", c.failed("the session bus", limit.Err())
		}
		return nil, "the session bus does not answer", nil
	}
	stop := context.AfterFunc(limit, func() { _ = raw.Close() })
	conn, err := dbus.NewConn(raw, dbus.WithContext(limit))
	c.conn = conn
	c.end = func() {
		if conn != nil {
			_ = conn.Close()
		}
		stop()
		_ = raw.Close()
		cancel()
	}
	if err == nil {
		err = conn.Auth([]dbus.Auth{dbus.AuthExternal(fmt.Sprint(os.Geteuid()))})
	}
	if err == nil {
		err = conn.Hello()
	}
	if err != nil {
		defer c.end()
		if limit.Err() != nil {
			return nil, "", c.failed("the session bus", err)
		}
		return nil, "the session bus does not take this user", nil
	}
	var none dbus.Variant
	err = c.service().CallWithContext(limit, serviceFace+".OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&none, &c.session)
	if absent(err) {
		defer c.end()
		return nil, "the session bus has no Secret Service", nil
	}
	if err != nil {
		defer c.end()
		return nil, "", c.failed("the keyring", err)
	}
	return c, "", nil
}

// dial takes the first address of a list that answers.
func dial(ctx context.Context, addresses string) net.Conn {
	for address := range strings.SplitSeq(addresses, ";") {
		keys, known := strings.CutPrefix(address, "unix:")
		if !known {
			continue
		}
		for pair := range strings.SplitSeq(keys, ",") {
			key, coded, _ := strings.Cut(pair, "=")
			path, err := url.PathUnescape(coded)
			switch {
			case err != nil || path == "":
				continue
			case key == "abstract":
				path = "@" + path
			case key != "path":
				continue
			}
			if conn, err := new(net.Dialer).DialContext(ctx, "unix", path); err == nil {
				return conn
			}
		}
	}
	return nil
}

// absent says that nobody serves the name and nobody can be started to.
func absent(err error) bool {
	var e dbus.Error
	return errors.As(err, &e) && (e.Name == "org.freedesktop.DBus.Error.ServiceUnknown" || e.Name == "org.freedesktop.DBus.Error.NameHasNoOwner" ||
		strings.HasPrefix(e.Name, "org.freedesktop.DBus.Error.Spawn."))
}

func (c *conversation) close() { c.end() }

func (c *conversation) service() dbus.BusObject { return c.conn.Object(serviceName, servicePath) }

// call asks one object; answers go to into.
func (c *conversation) call(path dbus.ObjectPath, method string, args []any, into ...any) error {
	return c.conn.Object(serviceName, path).CallWithContext(c.limit, method, 0, args...).Store(into...)
}

// failed is the sentence of an error. The service's own text is left out: it may quote what it was given.
func (c *conversation) failed(what string, err error) *protocol.Error {
	var e dbus.Error
	switch {
	case errors.Is(c.limit.Err(), context.Canceled):
		return ended(c.limit, what)
	case c.limit.Err() != nil:
		return fail("The time was up while " + what + " did not answer. No other place is tried.").WithHint("hcpx doctor")
	case errors.As(err, &e) && e.Name == "org.freedesktop.Secret.Error.IsLocked":
		return lockedRing()
	case errors.As(err, &e):
		return fail("The keyring of the OS refused: " + e.Name + ".").WithHint("hcpx doctor")
	}
	return fail("The connection to the keyring of the OS broke.").WithHint("hcpx doctor")
}

func lockedRing() *protocol.Error {
	return fail("The keyring of the OS is locked, and no other place is tried. Unlock it, and try again.").WithHint(unlockHint)
}

// unlocked has the service unlock an object if that needs no person; a prompt would.
func (c *conversation) unlocked(path dbus.ObjectPath) *protocol.Error {
	var done []dbus.ObjectPath
	var prompt dbus.ObjectPath
	err := c.call(servicePath, serviceFace+".Unlock", []any{[]dbus.ObjectPath{path}}, &done, &prompt)
	switch {
	case err != nil:
		return c.failed("the keyring", err)
	case prompt != nowhere:
		return lockedRing()
	}
	return nil
}

// standard is the collection for new items, nowhere when there is none.
func (c *conversation) standard() (dbus.ObjectPath, *protocol.Error) {
	var path dbus.ObjectPath
	if err := c.call(servicePath, serviceFace+".ReadAlias", []any{"default"}, &path); err != nil {
		return "", c.failed("the keyring", err)
	}
	return path, nil
}

func (c *conversation) ready() (string, *protocol.Error) {
	path, err := c.standard()
	switch {
	case err != nil:
		return "", err
	case path == nowhere:
		return "no keyring was ever made", nil
	}
	return "", c.unlocked(path)
}

func (s slot) attributes() map[string]string {
	return map[string]string{"application": "hcpx", "store": s.store, "name": s.name}
}

// find answers the one item of a name, "" for none. Once one was put, that none is found counts only when nothing is
// locked, since some services show nothing of a locked collection.
func (c *conversation) find(s slot) (dbus.ObjectPath, *protocol.Error) {
	var free, shut []dbus.ObjectPath
	if err := c.call(servicePath, serviceFace+".SearchItems", []any{s.attributes()}, &free, &shut); err != nil {
		return "", c.failed("the keyring", err)
	}
	switch all := append(free, shut...); {
	case len(all) > 1:
		return "", fail("The keyring of the OS has more than one item of this secret; which one counts is not guessed. Remove all but one.").
			WithHint("secret-tool search --all application hcpx store " + s.store)
	case len(shut) == 1:
		return shut[0], c.unlocked(shut[0])
	case len(free) == 1:
		return free[0], nil
	case s.fresh:
		return "", nil
	}
	return "", c.nothingLocked()
}

func (c *conversation) nothingLocked() *protocol.Error {
	v, err := c.service().GetProperty(serviceFace + ".Collections")
	if err != nil {
		return c.failed("the keyring", err)
	}
	paths, _ := v.Value().([]dbus.ObjectPath)
	for _, path := range paths {
		v, err := c.conn.Object(serviceName, path).GetProperty(collection + ".Locked")
		if err != nil {
			return c.failed("the keyring", err)
		}
		if shut, ok := v.Value().(bool); !ok || shut {
			if err := c.unlocked(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *conversation) get(s slot) ([]byte, bool, *protocol.Error) {
	path, err := c.find(s)
	if err != nil || path == "" {
		return nil, false, err
	}
	var secret wire
	if err := c.call(path, item+".GetSecret", []any{c.session}, &secret); err != nil {
		return nil, false, c.failed("the keyring", err)
	}
	return secret.Value, true, nil
}

func (c *conversation) set(s slot, value []byte) (bool, *protocol.Error) {
	path, failed := c.find(s)
	if failed != nil {
		return true, failed
	}
	secret := wire{c.session, []byte{}, value, "application/octet-stream"}
	if path != "" {
		err := c.call(path, item+".SetSecret", []any{secret})
		return c.refused(err)
	}
	where, failed := c.standard()
	if failed == nil && where == nowhere {
		failed = fail("The keyring of the OS, where this secret was put, has no collection any more.").WithHint("hcpx doctor")
	}
	if failed == nil {
		failed = c.unlocked(where)
	}
	if failed != nil {
		return true, failed
	}
	properties := map[string]dbus.Variant{
		item + ".Label":      dbus.MakeVariant("hcpx: " + s.name),
		item + ".Attributes": dbus.MakeVariant(s.attributes()),
	}
	var made, prompt dbus.ObjectPath
	err := c.call(where, collection+".CreateItem", []any{properties, secret, true}, &made, &prompt)
	if err == nil && made == nowhere {
		return true, lockedRing() // it wants to ask a person
	}
	return c.refused(err)
}

// refused tells an answer from silence: only after an answer is it known that nothing was put.
func (c *conversation) refused(err error) (bool, *protocol.Error) {
	if err == nil {
		return false, nil
	}
	var e dbus.Error
	return errors.As(err, &e) && c.limit.Err() == nil, c.failed("the keyring", err)
}

func (c *conversation) remove(s slot) *protocol.Error {
	path, failed := c.find(s)
	if failed != nil || path == "" {
		return failed
	}
	var prompt dbus.ObjectPath
	if err := c.call(path, item+".Delete", nil, &prompt); err != nil {
		return c.failed("the keyring", err)
	}
	if prompt != nowhere {
		return lockedRing()
	}
	return nil
}
