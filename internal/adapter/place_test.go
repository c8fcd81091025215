package adapter

import (
	"testing"

	"hcpx/internal/manifest"
)

func Test_14_2_IssuesStandWhereTheirPointerSays(t *testing.T) {
	src := "{\"verbs\": {\n \"ü\": {\"argv\": [\"a\", \"b\"]}}}"
	m, _ := manifest.Decode([]byte(src))
	if m == nil || len(m.Commands) != 1 {
		t.Fatal("no command")
	}
	c := m.Commands[0]
	at := CommandPlace(m, c)
	list := c.Node.Get("argv")
	for _, test := range []struct {
		place        Place
		pointer      string
		line, column int
	}{
		{at, "/verbs/ü", 2, 2},
		{at.Member(c.Node, "argv"), "/verbs/ü/argv", 2, 16},
		{at.Key(c.Node, "argv"), "/verbs/ü/argv", 2, 8},
		{at.Member(c.Node, "argv").Item(list, 1), "/verbs/ü/argv/1", 2, 22},
		{at.Member(c.Node, "absent"), "/verbs/ü", 2, 2},
		{at.Key(nil, "absent"), "/verbs/ü", 2, 2},
	} {
		i := test.place.Issue("wrap.placeholder", "It is wrong.")
		if i.Pointer != test.pointer || i.Line != test.line || i.Column != test.column || i.File != manifest.File || i.Section != "§3.3" {
			t.Errorf("%+v, want %s at %d:%d", i, test.pointer, test.line, test.column)
		}
	}
}
