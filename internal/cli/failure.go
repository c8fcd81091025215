package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"hcpx/internal/protocol"
)

// status is an exit code whose answer is already written (§6.10): a Result, lint's issues, doctor's findings.
type status int

// Error makes status a Go error, so that it can leave a command.
func (s status) Error() string { return fmt.Sprintf("exit %d", int(s)) }

// exit is the error that leaves a command with the code; nil for 0.
func exit(code int) error {
	if code == 0 {
		return nil
	}
	return status(code)
}

// usage is the answer to a wrong command line: code usage, exit 64.
func usage(command, format string, args ...any) error {
	hint := "hcpx help"
	if command != "" {
		hint = "hcpx " + command + " --help"
	}
	return protocol.Fail(protocol.UsageError, stopped(fmt.Sprintf(format, args...))).WithHint(hint)
}

// broken is a fault of this process itself, such as a stream that takes no bytes.
func broken(doing string, err error) error {
	return protocol.Fail(protocol.InternalError, fmt.Sprintf("Could not %s: %s.", doing, protocol.Clause(err.Error())))
}

// lift turns the typed answer of a room into a Go error without making a typed nil.
func lift(e *protocol.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// finish prints what a command left unsaid and gives the exit code.
func (d *deps) finish(err error) int {
	var code status
	if err == nil {
		return 0
	}
	if errors.As(err, &code) {
		return int(code)
	}
	failure := asFailure(err)
	if werr := d.showFailure(failure); werr != nil {
		return protocol.InternalError.Exit()
	}
	return failure.Code.Exit()
}

// asFailure makes the protocol's error of any error. What is no *protocol.Error came from reading the
// command line; commands themselves wrap theirs.
func asFailure(err error) *protocol.Error {
	var e *protocol.Error
	if errors.As(err, &e) {
		return e
	}
	return protocol.Fail(protocol.UsageError, sentence(err.Error())).WithHint("hcpx help")
}

// showFailure prints {"error": …} on stdout with --json, else a sentence and a hint on stderr.
func (d *deps) showFailure(e *protocol.Error) error {
	if d.json() {
		return d.writeJSON(struct {
			Error *protocol.Error `json:"error"`
		}{e})
	}
	p := d.errPage()
	d.explain(p, e)
	return p.err
}

// explain writes the sentence, what belongs to it, and the hint.
func (d *deps) explain(p *page, e *protocol.Error) {
	p.raw(p.paint(bad, "error: ") + clean(e.Message) + "\n")
	explainDetails(p, e)
	if e.Hint != "" {
		p.raw(p.paint(faint, "hint: ") + clean(e.Hint) + "\n")
	}
}

// flagSentence says what is wrong with a flag; what a library of Go says of a value is not for a person.
func flagSentence(err error) string {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return sentence(err.Error())
	}
	takes := map[string]string{"bool": "true or false", "int": "a whole number", "uint64": "a whole number", "duration": "a time as 90s or 5m"}
	return fmt.Sprintf("--%s takes %s, not %q.", bad.GetFlag().Name, orWord(takes[bad.GetFlag().Value.Type()], "another form of value"), clip(clean(bad.GetValue())))
}

// sentence makes a message of a library look like one of ours.
func sentence(s string) string {
	if s == "" {
		return "The command line is wrong."
	}
	if c := s[0]; c >= 'a' && c <= 'z' {
		s = string(c-'a'+'A') + s[1:]
	}
	return stopped(s)
}

// stopped ends a sentence.
func stopped(s string) string {
	if s != "" && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}
