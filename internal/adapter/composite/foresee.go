package composite

import (
	"context"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
)

var _ adapter.Foreseer = (*command)(nil)

// Foresee evaluates the arguments of the calls with no result of any step (§15.2). What names such a result, or fails
// without one, is nil; what reaches one in another way will differ from what is given here when it runs.
func (c *command) Foresee(ctx context.Context, args *jsondoc.Node) []*jsondoc.Node {
	input := seen(args, nil)
	var out []*jsondoc.Node
	for i := range c.steps {
		s := &c.steps[i]
		switch {
		case s.Verb == "":
		case s.args == "":
			out = append(out, jsondoc.Obj())
		case strings.Contains(s.args, "steps"): // without that word it may still reach them, as by to_entries
			out = append(out, nil)
		default:
			v, err := c.machine.Eval(ctx, s.args, input)
			if err != nil || v.Kind != jsondoc.Object {
				v = nil
			}
			out = append(out, v)
		}
	}
	return out
}
