package grant

import (
	"encoding/json"
	"strings"

	"hcpx/internal/jsondoc"
)

// argsFit says whether every named argument is present and fits one of its values (§9.6). A rule
// that can't be read fits nothing.
func (g *Grant) argsFit(args *jsondoc.Node) bool {
	for name, values := range g.Args {
		arg := args.Get(name)
		if arg == nil || !valueFits(values, arg) {
			return false
		}
	}
	return true
}

// valueFits: an equal JSON value, a glob for strings, or an array whose every item fits (§9.6).
func valueFits(values []json.RawMessage, arg *jsondoc.Node) bool {
	for _, raw := range values {
		rule, faults := jsondoc.Parse(raw, jsondoc.Limits{})
		if rule == nil || len(faults) > 0 {
			continue
		}
		if rule.Kind == jsondoc.String && arg.Kind == jsondoc.String {
			if Glob(rule.Text, arg.Text) {
				return true
			}
			continue
		}
		if rule.Equal(arg) {
			return true
		}
	}
	if arg.Kind != jsondoc.Array {
		return false
	}
	for _, item := range arg.Items {
		if !valueFits(values, item) {
			return false
		}
	}
	return true
}

// ArgValue reads the V of --arg K=V: JSON when it is true, false, null or a number, else a glob (§9.6).
func ArgValue(s string) json.RawMessage {
	node, faults := jsondoc.Parse([]byte(s), jsondoc.Limits{})
	if node != nil && len(faults) == 0 && strings.TrimSpace(s) == s {
		switch node.Kind {
		case jsondoc.Null, jsondoc.Bool, jsondoc.Number:
			return json.RawMessage(s)
		}
	}
	return jsondoc.Str(s).Append(nil)
}
