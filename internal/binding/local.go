package binding

import (
	"bytes"
	"context"
	"fmt"
	"unicode"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// local reads the source of mode local, now, and no other (§8.3).
func (h *hub) local(ctx context.Context, src *manifest.Source) ([]byte, *protocol.Error) {
	switch src.Kind {
	case manifest.KindEnv:
		return h.variable(src.Name)
	case manifest.KindFile:
		return h.file(src.Path, src.Pointer)
	default:
		out, err := h.Command(ctx, src.Argv)
		if err != nil {
			return nil, err
		}
		return fit(firstLine(out), "The first line of what "+src.Argv[0]+" prints")
	}
}

func (h *hub) variable(name string) ([]byte, *protocol.Error) {
	value := h.Getenv(name)
	if value == "" {
		return nil, failedLocal("The variable " + name + ", from which the credential comes, is not set.")
	}
	return fit([]byte(value), "The variable "+name)
}

// file is a text of a JSON file, or the first line of any file.
func (h *hub) file(path, pointer string) ([]byte, *protocol.Error) {
	src, err := h.ReadFile(path)
	if err != nil {
		return nil, failedLocal(fmt.Sprintf("The file %s, from which the credential comes, cannot be read: %s.", path, protocol.Clause(err.Error())))
	}
	if pointer == "" {
		return fit(firstLine(src), "The first line of "+path)
	}
	root, faults := jsondoc.Parse(src, jsondoc.Limits{})
	if len(faults) > 0 {
		return nil, failed(Malformed, "The file "+path+", from which the credential comes, is not valid JSON.")
	}
	n := root.Lookup(pointer)
	if n == nil || n.Kind != jsondoc.String {
		return nil, failedLocal("The file " + path + " has no text at " + pointer + ", from where the credential comes.")
	}
	return fit([]byte(n.Text), "What stands at "+pointer+" in "+path)
}

func firstLine(b []byte) []byte {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return bytes.Clone(bytes.TrimSuffix(line, []byte("\r")))
}

// fit takes what can be a credential: long enough to be masked, one line, no control characters. what names it in the
// refusal; the value itself never does.
func fit(value []byte, what string) ([]byte, *protocol.Error) {
	switch {
	case len(value) < shortest:
		return nil, failed(Malformed, fmt.Sprintf("%s is shorter than %d bytes, which is no credential.", what, shortest))
	case len(value) > longest:
		return nil, failed(Malformed, fmt.Sprintf("%s is longer than %d bytes, which is no credential.", what, longest))
	case bytes.ContainsFunc(value, unicode.IsControl):
		return nil, failed(Malformed, what+" has a control character, which is no credential.")
	}
	return value, nil
}
