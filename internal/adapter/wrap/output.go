package wrap

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// The forms of a program's output (§6.5).
const (
	asJSON   = "json"
	asNDJSON = "ndjson"
	asText   = "text"
)

// space is what JSON takes for white space.
const space = " \t\r\n"

// maxDepth is how deep a result may nest, as an envelope may (§6.1).
const maxDepth = 128

// parse makes the result of a program's output (§6.5). Numbers keep their text. replaced counts the bytes
// of text output that were not UTF-8.
func parse(form string, stdout []byte) (v *jsondoc.Node, replaced int, err *protocol.Error) {
	switch form {
	case asText:
		s, replaced := adapter.Decode(trimEnd(stdout))
		return jsondoc.Str(s), replaced, nil
	case asNDJSON:
		v, err = lines(stdout)
	default:
		v, err = value(stdout)
	}
	return v, 0, err
}

// value reads stdout as one JSON value. A member named twice is refused: two readers would see two results.
func value(stdout []byte) (*jsondoc.Node, *protocol.Error) {
	if len(bytes.Trim(stdout, space)) == 0 {
		return nil, invalid("The program wrote nothing, where one JSON value belongs.")
	}
	v, fault := one(stdout)
	if fault != nil {
		line, column := jsondoc.Place(stdout, fault.Offset)
		return nil, invalid(fmt.Sprintf("The program's output is not one JSON value: %s at line %d, column %d.", clause(fault.Message), line, column)).
			With("line", line).With("column", column)
	}
	return v, nil
}

// lines reads one JSON value a line into an array; blank lines are skipped.
func lines(stdout []byte) (*jsondoc.Node, *protocol.Error) {
	items := []*jsondoc.Node{}
	for n := 1; len(stdout) > 0; n++ {
		var line []byte
		line, stdout, _ = bytes.Cut(stdout, []byte("\n"))
		if line = bytes.Trim(line, space); len(line) == 0 {
			continue
		}
		v, fault := one(line)
		if fault != nil {
			return nil, invalid(fmt.Sprintf("Line %d of the program's output is not one JSON value: %s.", n, clause(fault.Message))).With("line", n)
		}
		items = append(items, v)
	}
	return jsondoc.Arr(items...), nil
}

func one(src []byte) (*jsondoc.Node, *jsondoc.Fault) {
	v, faults := jsondoc.Parse(src, jsondoc.Limits{Bytes: max(len(src), 1), Depth: maxDepth})
	if len(faults) > 0 {
		return nil, &faults[0]
	}
	return v, nil
}

func invalid(message string) *protocol.Error { return protocol.Fail(protocol.InvalidResult, message) }

// clause fits a sentence into another one.
func clause(message string) string {
	message = string(bytes.TrimSuffix([]byte(message), []byte(".")))
	if r, size := utf8.DecodeRuneInString(message); 'A' <= r && r <= 'Z' {
		return string(r+'a'-'A') + message[size:]
	}
	return message
}

// trimEnd removes one final LF with a CR before it (§6.5).
func trimEnd(b []byte) []byte {
	if rest, ok := bytes.CutSuffix(b, []byte("\n")); ok {
		return bytes.TrimSuffix(rest, []byte("\r"))
	}
	return b
}
