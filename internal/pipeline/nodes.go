package pipeline

import (
	"strconv"

	"hcpx/internal/jsondoc"
)

// object makes an object from names and values in turn.
func object(pairs ...any) *jsondoc.Node {
	var members []jsondoc.Member
	for i := 0; i+1 < len(pairs); i += 2 {
		members = append(members, jsondoc.Member{Key: pairs[i].(string), Value: pairs[i+1].(*jsondoc.Node)})
	}
	return jsondoc.Obj(members...)
}

func stringsNode(list []string) *jsondoc.Node {
	items := make([]*jsondoc.Node, len(list))
	for i, s := range list {
		items[i] = jsondoc.Str(s)
	}
	return jsondoc.Arr(items...)
}

func number(n uint64) *jsondoc.Node { return jsondoc.Num(strconv.FormatUint(n, 10)) }

func orNull(s string) *jsondoc.Node {
	if s == "" {
		return jsondoc.NullNode()
	}
	return jsondoc.Str(s)
}
