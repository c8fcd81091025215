package imports

import (
	"bytes"

	"hcpx/internal/jsondoc"
)

// lineWidth is how long a line may be that holds a whole value.
const lineWidth = 120

// lay writes a value for people: what fits on one line stands on one, the rest one member a line.
func lay(n *jsondoc.Node) []byte {
	return append(layAt(nil, n, 0), '\n')
}

func layAt(dst []byte, n *jsondoc.Node, indent int) []byte {
	if flat := n.Append(nil); len(flat)+indent <= lineWidth || n.Kind != jsondoc.Object && n.Kind != jsondoc.Array {
		return append(dst, flat...)
	}
	pad := func(depth int) { dst = append(append(dst, '\n'), bytes.Repeat([]byte(" "), depth)...) }
	if n.Kind == jsondoc.Array {
		dst = append(dst, '[')
		for i, item := range n.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			pad(indent + 2)
			dst = layAt(dst, item, indent+2)
		}
		pad(indent)
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, m := range n.Members {
		if i > 0 {
			dst = append(dst, ',')
		}
		pad(indent + 2)
		dst = append(jsondoc.Str(m.Key).Append(dst), ": "...)
		dst = layAt(dst, m.Value, indent+2)
	}
	pad(indent)
	return append(dst, '}')
}
