package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/term"

	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// person is who connects at this face (§8.3): a prompt without echo on a terminal, one line of standard input where it
// is none. Nothing comes from the command line.
func (d *deps) person(s protocol.Session) lifecycle.Person {
	return lifecycle.Person{
		Secret: func(_ context.Context, what string) ([]byte, *protocol.Error) { return d.secret(s, what) },
		Login:  func(_ context.Context, name string) (string, []byte, *protocol.Error) { return d.login(s, name) },
		Visit:  d.visit,
	}
}

// maxSecret bounds a line that is a secret.
const maxSecret = 64 << 10

func (d *deps) secret(s protocol.Session, what string) ([]byte, *protocol.Error) {
	if !d.env.InTTY {
		return d.secretLine()
	}
	if !d.mayAsk(s) {
		return nil, protocol.Fail(protocol.UsageError, what+" is asked of a person on a terminal; without one it is one line of standard input.").
			WithHint("hcpx connect PACK < FILE")
	}
	return d.hidden(what)
}

// login asks for a name, unless the pack says which, and a password. In one line they stand as name:password.
func (d *deps) login(s protocol.Session, name string) (string, []byte, *protocol.Error) {
	if !d.env.InTTY {
		line, err := d.secretLine()
		if err != nil || name != "" {
			return name, line, err
		}
		user, password, _ := bytes.Cut(line, []byte(":"))
		return string(user), password, nil
	}
	if name == "" && d.mayAsk(s) {
		p := d.errPage()
		p.raw(p.paint(strong, "Name") + ": ")
		line, err := d.secretLine()
		if err != nil {
			return "", nil, err
		}
		name = string(line)
	}
	password, err := d.secret(s, "The password of "+name)
	return name, password, err
}

// secretLine is the next line of standard input; what follows it stays there for the next question.
func (d *deps) secretLine() ([]byte, *protocol.Error) {
	if d.lines == nil {
		d.lines = bufio.NewReaderSize(d.env.In, maxSecret)
	}
	line, err := d.wait(func() ([]byte, error) {
		line, err := d.lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, broken("read a line", err)
		}
		return bytes.Clone(bytes.TrimRight(line, "\r\n")), nil
	})
	if err != nil {
		return nil, asFailure(err)
	}
	return line, nil
}

// hidden reads one line of the terminal without echo. A signal ends the wait and gives the echo back.
func (d *deps) hidden(what string) ([]byte, *protocol.Error) {
	f, ok := d.env.In.(*os.File)
	if !ok {
		return nil, protocol.Fail(protocol.UsageError, what+" cannot be asked for here without showing it.").WithHint("hcpx connect PACK < FILE")
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return nil, asFailure(broken("ask", err))
	}
	if err := unseen(int(f.Fd())); err != nil {
		return nil, asFailure(broken("ask", err))
	}
	p := d.errPage()
	p.raw(p.paint(strong, clean(what)) + " (not shown): ")
	value, err := d.wait(func() ([]byte, error) { return term.ReadPassword(int(f.Fd())) })
	if back := term.Restore(int(f.Fd()), before); err == nil {
		err = back
	}
	p.raw("\n")
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, asFailure(err)
	}
	return value, nil
}

// passphrase asks for that of the vault, twice for a new one; a process that nobody sits before has none to give.
func (d *deps) passphrase(_ context.Context, fresh bool) ([]byte, *protocol.Error) {
	if d.session == nil || !d.mayAsk(*d.session) {
		return nil, protocol.Fail(protocol.BindingFailed, "The vault is kept by a passphrase, which is asked of a person on a terminal, and of nobody here.").WithHint("hcpx config show")
	}
	phrase, err := d.hidden("The passphrase of the vault")
	if err != nil || !fresh {
		return phrase, err
	}
	again, err := d.hidden("Once more, the passphrase of the vault")
	if err == nil && !bytes.Equal(phrase, again) {
		err = protocol.Fail(protocol.UsageError, "The two passphrases are not the same; nothing was made.")
	}
	clear(again)
	return phrase, err
}

// visit shows where a person must go; it opens no browser.
func (d *deps) visit(address, code string) {
	p := d.errPage()
	p.raw("Open this page to agree: " + p.paint(strong, clean(address)) + "\n")
	if code != "" {
		p.raw("and type this code there: " + p.paint(strong, clean(code)) + "\n")
	}
	p.raw("Waiting for your answer …\n")
}
