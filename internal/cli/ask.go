package cli

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"hcpx/internal/protocol"
)

// mayAsk says whether a question may be put: a person on a terminal who did not ask for JSON, never an
// agent (§12.1.6, §6.7).
func (d *deps) mayAsk(s protocol.Session) bool {
	return d.env.InTTY && d.env.ErrTTY && !d.json() && s.Principal.Human()
}

// ask puts one question on stderr and reads one line; only y and yes are a yes.
func (d *deps) ask(question string) (bool, error) {
	p := d.errPage()
	p.raw(p.paint(strong, question) + " [y/N] ")
	if p.err != nil {
		return false, broken("ask", p.err)
	}
	line, err := d.wait(func() ([]byte, error) {
		line, err := bufio.NewReader(io.LimitReader(d.env.In, 1024)).ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, broken("read the answer", err)
		}
		return line, nil
	})
	if err != nil {
		return false, err
	}
	word := strings.ToLower(strings.TrimSpace(string(line)))
	return word == "y" || word == "yes", nil
}

// wait reads a stream that a person may leave open, once a signal would be heard; one ends the waiting, and the read
// is left behind.
func (d *deps) wait(read func() ([]byte, error)) ([]byte, error) {
	if d.env.Ready != nil {
		<-d.env.Ready
	}
	type answer struct {
		text []byte
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := read()
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		return a.text, a.err
	case <-d.done:
		return nil, protocol.Fail(protocol.Canceled, "Cancelled; nothing was done.")
	}
}
