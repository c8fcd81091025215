package wrap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// everything declares one argument of each kind.
const everything = `{"type":"object","additionalProperties":false,"properties":{
  "s":{"type":"string"}, "u":{"type":"string"}, "d":{"type":"string","x-hcp-allow-dash":true}, "w":{"enum":["fast","slow"]},
  "n":{"type":"number"}, "i":{"type":"integer"}, "b":{"type":"boolean"}, "m":{"type":["string","number"]},
  "t":{"type":"array","items":{"type":"string"}}, "k":{"type":"array","items":{"type":"integer"}},
  "x":{"type":"array","items":{"type":"string","x-hcp-allow-dash":true}}, "p":{"type":"array","items":{"type":"object"}},
  "o":{"type":"object"}, "any":{}, "a.b":{"type":"string"}}}`

func surface(block, members string) []byte {
	return fmt.Appendf(nil, `{"hcp":{"version":"1.1"},"id":"demo","version":"1.0.0","summary":"A demo.","adapter":"wrap",
"wrap":%s,
"verbs":{"run":{"summary":"Run it.",%s}}}`, block, members)
}

func compileSource(t testing.TB, src []byte) (*manifest.Manifest, adapter.Command, []protocol.Issue) {
	t.Helper()
	m, _ := manifest.Decode(src)
	if m == nil || len(m.Commands) != 1 {
		t.Fatalf("no manifest in %s", src)
	}
	c, issues := New().Compile(m, m.Commands[0])
	return m, c, issues
}

func compileMembers(t testing.TB, members string) (adapter.Command, []protocol.Issue) {
	t.Helper()
	_, c, issues := compileSource(t, surface(`{"bin":"demo"}`, members))
	return c, issues
}

func mustCompile(t testing.TB, members string) adapter.Command {
	t.Helper()
	c, issues := compileMembers(t, members)
	if c == nil {
		t.Fatalf("%s does not compile: %+v", members, issues)
	}
	return c
}

func node(t testing.TB, text string) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if n == nil || len(faults) > 0 {
		t.Fatalf("%s: %+v", text, faults)
	}
	return n
}

func Test_3_3_Template(t *testing.T) {
	long := strings.Repeat("ä'\"$(rm)\n", 12000)
	for name, test := range map[string]struct {
		argv, args string
		want       []string
	}{
		"a literal":                                   {`["log","--all",""]`, `{}`, []string{"log", "--all", ""}},
		"a placeholder is one element":                {`["{s}"]`, `{"s":"a b \"c\" $(d) 'e' \n\t\\ ü 🚋"}`, []string{"a b \"c\" $(d) 'e' \n\t\\ ü 🚋"}},
		"placeholders inside a string":                {`["--from={s}:{u}!"]`, `{"s":"a","u":"b"}`, []string{"--from=a:b!"}},
		"an absent argument drops its string":         {`["a","--from={s}","b{s}{u}","c"]`, `{"u":"x"}`, []string{"a", "c"}},
		"an empty string is present":                  {`["{s}"]`, `{"s":""}`, []string{""}},
		"a group is kept as a whole":                  {`[["--from","{s}"],"x"]`, `{"s":"a"}`, []string{"--from", "a", "x"}},
		"a group is dropped as a whole":               {`[["--from","{s}"],"x"]`, `{}`, []string{"x"}},
		"an inner group drops alone":                  {`[["--a",["--b","{s}"],"{u}"]]`, `{"u":"v"}`, []string{"--a", "v"}},
		"an if within a group drops the group":        {`[["--a",{"if":"b","then":["{s}"]}]]`, `{"b":true}`, nil},
		"if true":                                     {`[{"if":"b","then":["-v"],"else":["-q"]}]`, `{"b":true}`, []string{"-v"}},
		"if false":                                    {`[{"if":"b","then":["-v"],"else":["-q"]}]`, `{"b":false}`, []string{"-q"}},
		"if absent":                                   {`[{"if":"b","then":["-v"],"else":["-q"]}]`, `{}`, []string{"-q"}},
		"if without else":                             {`[{"if":"b","then":["-v"]}]`, `{}`, nil},
		"if on presence":                              {`[{"if":"s","then":["--s","{s}"],"else":["--none"]}]`, `{"s":""}`, []string{"--s", ""}},
		"if on a number 0 is presence":                {`[{"if":"n","then":["-n"]}]`, `{"n":0}`, []string{"-n"}},
		"each":                                        {`[{"each":"t","argv":["--tag","{}"]}]`, `{"t":["a","b c"]}`, []string{"--tag", "a", "--tag", "b c"}},
		"each with other arguments":                   {`[{"each":"t","argv":["{s}={}"]}]`, `{"s":"k","t":["a","b"]}`, []string{"k=a", "k=b"}},
		"each of nothing":                             {`[{"each":"t","argv":["{}"]},"x"]`, `{"t":[]}`, []string{"x"}},
		"each of an absent array":                     {`[{"each":"t","argv":["{}"]},"x"]`, `{}`, []string{"x"}},
		"each of an absent array in a group":          {`[["--tags",{"each":"t","argv":["{}"]}]]`, `{}`, nil},
		"each within each means the inner item":       {`[{"each":"k","argv":[{"each":"t","argv":["x{}"]},"y{}"]}]`, `{"k":[1,2],"t":["a"]}`, []string{"xa", "y1", "xa", "y2"}},
		"each of objects":                             {`[{"each":"p","argv":["{|json}"]}]`, `{"p":[{"a":1.0},{}]}`, []string{`{"a":1}`, `{}`}},
		"json of any value":                           {`["{o|json}","{s|json}","{b|json}","{any|json}"]`, `{"o":{"b":[1,"<ü>"],"a":null},"s":"q\"\n","b":true,"any":[2]}`, []string{`{"b":[1,"<ü>"],"a":null}`, `"q\"\n"`, "true", "[2]"}},
		"braces":                                      {`["{{s}}","{{{s}}}","a}}b{{"]`, `{"s":"v"}`, []string{"{s}", "{v}", "a}b{"}},
		"a name with a dot is a top-level argument":   {`["{a.b}"]`, `{"a.b":"v"}`, []string{"v"}},
		"booleans":                                    {`["{b}"]`, `{"b":false}`, []string{"false"}},
		"null is present":                             {`["{any}",{"if":"any","then":["y"]}]`, `{"any":null}`, []string{"null", "y"}},
		"1.0 renders 1":                               {`["{i}"]`, `{"i":1.0}`, []string{"1"}},
		"an integer beyond 2^53 keeps its digits":     {`["{i}"]`, `{"i":9007199254740993}`, []string{"9007199254740993"}},
		"an exponent is expanded":                     {`["{i}","{n}"]`, `{"i":1e3,"n":-2.5E-3}`, []string{"1000", "-0.0025"}},
		"a long decimal keeps its digits":             {`["{n}"]`, `{"n":0.12345678901234567890123}`, []string{"0.12345678901234567890123"}},
		"an exponent past 400 digits stays":           {`["{n}"]`, `{"n":1e401}`, []string{"1e401"}},
		"100 kB of any text come through":             {`["{s}"]`, `{"s":` + string(jsondoc.Str(long).Append(nil)) + `}`, []string{long}},
		"placeholders are not read in values":         {`["{s}"]`, `{"s":"{u}{{}}"}`, []string{"{u}{{}}"}},
		"an undeclared default is not made":           {`["{w}"]`, `{"w":"fast"}`, []string{"fast"}},
		"then without elements":                       {`[{"if":"b","then":[],"else":["n"]}]`, `{"b":true}`, nil},
		"a group in each":                             {`[{"each":"t","argv":[["-t","{}","{s}"],"e"]}]`, `{"t":["a"]}`, []string{"e"}},
		"what a dropped group refused does not count": {`[["{s}","{u}"]]`, `{"s":"-x"}`, nil},
		"a guard in a dropped group guards nothing":   {`[["--","{u}"],"{n}"]`, `{"n":-1}`, []string{"-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustCompile(t, `"args":`+everything+`,"argv":`+test.argv)
			call, violations := c.Render(node(t, test.args))
			if call == nil {
				t.Fatalf("refused: %+v", violations)
			}
			if diff := cmp.Diff(append([]string{"demo"}, test.want...), call.Argv); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func Test_3_3_OptionInjection(t *testing.T) {
	for name, test := range map[string]struct {
		argv, args, pointer string // pointer "" = let through
	}{
		"a dash at the start":                   {`["{s}"]`, `{"s":"-rf"}`, "/s"},
		"a dash alone":                          {`["{s}"]`, `{"s":"-"}`, "/s"},
		"two dashes":                            {`["{s}"]`, `{"s":"--"}`, "/s"},
		"in a group":                            {`[["--from","{s}"]]`, `{"s":"--x"}`, "/s"},
		"in each":                               {`[{"each":"t","argv":["{}"]}]`, `{"t":["a","-b"]}`, "/t/1"},
		"in then":                               {`[{"if":"s","then":["{s}"]}]`, `{"s":"-x"}`, "/s"},
		"after an empty placeholder":            {`["{u}{s}"]`, `{"u":"","s":"-x"}`, "/s"},
		"a union with number":                   {`["{m}"]`, `{"m":-5}`, "/m"},
		"a dash of the template":                {`["-{s}","--o={u}"]`, `{"s":"-x","u":"-y"}`, ""},
		"a dash inside":                         {`["{s}"]`, `{"s":"a-b"}`, ""},
		"another dash character":                {`["{s}"]`, `{"s":"–x"}`, ""},
		"after a literal --":                    {`["--","{s}"]`, `{"s":"-x"}`, ""},
		"after a rendered -- of a group":        {`[["--","{u}"],"{s}"]`, `{"u":"a","s":"-x"}`, ""},
		"after a -- that was dropped":           {`[["--","{u}"],"{s}"]`, `{"s":"-x"}`, "/s"},
		"after a -- that was not chosen":        {`[{"if":"b","then":["--"]},"{s}"]`, `{"b":false,"s":"-x"}`, "/s"},
		"before the --":                         {`["{s}","--"]`, `{"s":"-x"}`, "/s"},
		"a -- out of a placeholder is no guard": {`["{d}","{s}"]`, `{"d":"--","s":"-x"}`, "/s"},
		"a -- made of two parts is no guard":    {`["-{d}","{s}"]`, `{"d":"-","s":"-x"}`, "/s"},
		"a number":                              {`["{n}","{i}"]`, `{"n":-1.5,"i":-3}`, ""},
		"items that are integers":               {`[{"each":"k","argv":["{}"]}]`, `{"k":[-1]}`, ""},
		"x-hcp-allow-dash":                      {`["{d}"]`, `{"d":"-x"}`, ""},
		"x-hcp-allow-dash of the items":         {`[{"each":"x","argv":["{}"]}]`, `{"x":["-x"]}`, ""},
		"json has quotes":                       {`["{s|json}"]`, `{"s":"-x"}`, ""},
		"untyped":                               {`["{any}"]`, `{"any":"-x"}`, "/any"},
		"NUL":                                   {`["a{s}"]`, `{"s":"x\u0000y"}`, "/s"},
		"NUL in each":                           {`["--",{"each":"t","argv":["{}"]}]`, `{"t":["\u0000"]}`, "/t/0"},
		"NUL in json is escaped":                {`["{s|json}"]`, `{"s":"\u0000"}`, ""},
		"an untyped object":                     {`["{any}"]`, `{"any":{}}`, "/any"},
		"an untyped each":                       {`["x"]`, `{"s":"-x"}`, ""},
		"longer than an argument may be":        {`["a{s}"]`, `{"s":"` + strings.Repeat("x", maxElement) + `"}`, "/s"},
		"as long as an argument may be":         {`["{s}"]`, `{"s":"` + strings.Repeat("x", maxElement) + `"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustCompile(t, `"args":`+everything+`,"argv":`+test.argv)
			call, violations := c.Render(node(t, test.args))
			if test.pointer == "" {
				if call == nil {
					t.Fatalf("refused: %+v", violations)
				}
				return
			}
			if call != nil || len(violations) != 1 || violations[0].Pointer != test.pointer {
				t.Fatalf("call %v, violations %+v; want one at %s", call, violations, test.pointer)
			}
		})
	}
}

func Test_3_3_Stdin(t *testing.T) {
	for name, test := range map[string]struct{ stdin, args, want string }{
		"a string":                  {`"{s}"`, `{"s":"-a\nb"}`, "-a\nb"},
		"with text around":          {`"<{s|json}>\n"`, `{"s":"x"}`, "<\"x\">\n"},
		"absent arguments empty it": {`"a{s}"`, `{}`, ""},
		"longer than an argument":   {`"{s}"`, `{"s":"` + strings.Repeat("y", 300_000) + `"}`, strings.Repeat("y", 300_000)},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustCompile(t, `"args":`+everything+`,"argv":[],"stdin":`+test.stdin)
			call, violations := c.Render(node(t, test.args))
			if call == nil {
				t.Fatal(violations)
			}
			if string(call.Stdin) != test.want {
				t.Errorf("stdin is %.80q, want %.80q", call.Stdin, test.want)
			}
		})
	}
	c := mustCompile(t, `"args":`+everything+`,"argv":[],"stdin":"{s}"`)
	if call, v := c.Render(node(t, `{"s":"a\u0000"}`)); call != nil || len(v) != 1 {
		t.Errorf("NUL in stdin: %v %v", call, v)
	}
}

func Test_3_3_Issues(t *testing.T) {
	for name, test := range map[string]struct{ members, code, pointer string }{
		"no such argument":            {`"argv":["a","{nobody}"]`, "wrap.placeholder", "/verbs/run/argv/1"},
		"no such argument in a group": {`"argv":[["--","{nobody}"]]`, "wrap.placeholder", "/verbs/run/argv/0/1"},
		"no such argument in if":      {`"argv":[{"if":"nobody","then":[]}]`, "wrap.placeholder", "/verbs/run/argv/0/if"},
		"no such argument in then":    {`"argv":[{"if":"b","then":["x{nobody}"]}]`, "wrap.placeholder", "/verbs/run/argv/0/then/0"},
		"no such argument in else":    {`"argv":[{"if":"b","then":[],"else":["x{nobody}"]}]`, "wrap.placeholder", "/verbs/run/argv/0/else/0"},
		"no such argument in each":    {`"argv":[{"each":"nobody","argv":["{}"]}]`, "wrap.placeholder", "/verbs/run/argv/0/each"},
		"each of no array":            {`"argv":[{"each":"s","argv":["x{}"]}]`, "wrap.placeholder", "/verbs/run/argv/0/each"},
		"an item outside each":        {`"argv":["x{}"]`, "wrap.placeholder", "/verbs/run/argv/0"},
		"an object without json":      {`"argv":["{o}"]`, "wrap.placeholder", "/verbs/run/argv/0"},
		"an array without json":       {`"argv":["{t}"]`, "wrap.placeholder", "/verbs/run/argv/0"},
		"an item that is an object":   {`"argv":[{"each":"p","argv":["{}"]}]`, "wrap.placeholder", "/verbs/run/argv/0/argv/0"},
		"another filter":              {`"argv":["x{s|upper}"]`, "wrap.placeholder", "/verbs/run/argv/0"},
		"a nested path":               {`"argv":["x{o.a}"]`, "wrap.placeholder", "/verbs/run/argv/0"},
		"an open brace":               {`"argv":["x{s"]`, "wrap.placeholder", "/verbs/run/argv/0"},
		"a closing brace":             {`"argv":["x}"]`, "wrap.placeholder", "/verbs/run/argv/0"},
		"a brace in a placeholder":    {`"argv":["{a{s}"]`, "wrap.placeholder", "/verbs/run/argv/0"},
		"stdin":                       {`"argv":[],"stdin":"{nobody}"`, "wrap.placeholder", "/verbs/run/stdin"},
		"no argv":                     {`"output":"text"`, "manifest.schema", "/verbs/run"},
		"argv is a string":            {`"argv":"log"`, "manifest.schema", "/verbs/run/argv"},
		"an element is a number":      {`"argv":["a",5]`, "manifest.schema", "/verbs/run/argv/1"},
		"an object of neither form":   {`"argv":[{}]`, "manifest.schema", "/verbs/run/argv/0"},
		"an object of both forms":     {`"argv":[{"if":"b","each":"t","then":[],"argv":[]}]`, "manifest.schema", "/verbs/run/argv/0"},
		"if without then":             {`"argv":[{"if":"b"}]`, "manifest.schema", "/verbs/run/argv/0"},
		"if is no name":               {`"argv":[{"if":true,"then":[]}]`, "manifest.schema", "/verbs/run/argv/0/if"},
		"each without argv":           {`"argv":[{"each":"t"}]`, "manifest.schema", "/verbs/run/argv/0"},
		"an unknown member":           {`"argv":[{"if":"b","then":[],"when":1}]`, "manifest.unknown-field", "/verbs/run/argv/0/when"},
		"NUL":                         {`"argv":["a\u0000"]`, "manifest.schema", "/verbs/run/argv/0"},
		"stdin is an array":           {`"argv":[],"stdin":[]`, "manifest.schema", "/verbs/run/stdin"},
		"an unknown output":           {`"argv":[],"output":"xml"`, "manifest.schema", "/verbs/run/output"},
		"ok_exit is a number":         {`"argv":[],"ok_exit":0`, "manifest.schema", "/verbs/run/ok_exit"},
		"ok_exit is empty":            {`"argv":[],"ok_exit":[]`, "manifest.schema", "/verbs/run/ok_exit"},
		"an exit code out of range":   {`"argv":[],"ok_exit":[0,256]`, "manifest.schema", "/verbs/run/ok_exit/1"},
		"a free string before no --":  {`"argv":["{s}"]`, "wrap.no-option-guard", "/verbs/run/argv/0"},
		"a free item before no --":    {`"argv":[{"each":"t","argv":["--t","{}"]}]`, "wrap.no-option-guard", "/verbs/run/argv/0/argv/1"},
	} {
		t.Run(name, func(t *testing.T) {
			m, c, issues := compileSource(t, surface(`{"bin":"demo"}`, `"args":`+everything+`,`+test.members))
			if len(issues) != 1 || string(issues[0].Code) != test.code || issues[0].Pointer != test.pointer {
				t.Fatalf("issues %+v; want one %s at %s", issues, test.code, test.pointer)
			}
			if failed := issues[0].Severity == protocol.SeverityError; failed != (c == nil) {
				t.Errorf("command %v with %+v", c, issues[0])
			}
			placed(t, m, issues[0])
		})
	}
}

// placed proves that line and column of an issue are those of what its pointer names: the value, or the
// key where the key is what is wrong.
func placed(t *testing.T, m *manifest.Manifest, i protocol.Issue) {
	t.Helper()
	offset := m.Root.Lookup(i.Pointer).Offset
	line, column := jsondoc.Place(m.Src, offset)
	parent, key := i.Pointer[:strings.LastIndex(i.Pointer, "/")], i.Pointer[strings.LastIndex(i.Pointer, "/")+1:]
	for _, member := range m.Root.Lookup(parent).Members {
		keyLine, keyColumn := jsondoc.Place(m.Src, member.Offset)
		if member.Key == key && keyLine == i.Line && keyColumn == i.Column {
			return
		}
	}
	if i.Line != line || i.Column != column || i.File != manifest.File {
		t.Errorf("%s at %s %d:%d, want %d:%d", i.Pointer, i.File, i.Line, i.Column, line, column)
	}
}

func Test_3_3_NoWarningWhereNoDashCanCome(t *testing.T) {
	for _, argv := range []string{
		`["--","{s}"]`, `["--s={s}"]`, `["{n}","{i}","{b}","{w}","{d}"]`, `["{s|json}","{o|json}"]`, `["--",["{s}",{"each":"t","argv":["{}"]}]]`,
		`[{"each":"x","argv":["{}"]}]`,
	} {
		if _, issues := compileMembers(t, `"args":`+everything+`,"argv":`+argv); len(issues) > 0 {
			t.Errorf("%s: %+v", argv, issues)
		}
	}
}

func Test_3_3_AllIssuesAreReported(t *testing.T) {
	_, issues := compileMembers(t, `"args":`+everything+`,"argv":["{x1}",["{x2}",7],{"each":"s","argv":["{x3}"]}],"stdin":"{x4}","output":1,"ok_exit":{}`)
	if len(issues) != 8 {
		t.Errorf("%d issues: %+v", len(issues), issues)
	}
}

func Test_3_3_PassThrough(t *testing.T) {
	const legacy = `{"bin":"demo","allowedSubcommands":["status","log"],"maxArgv":3}`
	const args = `"args":{"type":"object","properties":{"argv":{"type":"array","items":{"type":"string"}}},"required":["argv"]}`
	_, c, issues := compileSource(t, surface(legacy, args))
	if c == nil {
		t.Fatal(issues)
	}
	for given, pointer := range map[string]string{
		`{"argv":["log"]}`: "", `{"argv":["status","-s","--x"]}`: "", `{"argv":[]}`: "/argv", `{"argv":["push"]}`: "/argv/0",
		`{"argv":["log","a","b","c"]}`: "/argv", `{"argv":["log","a\u0000"]}`: "/argv/1", `{"argv":["--log"]}`: "/argv/0", `{}`: "/argv",
	} {
		call, violations := c.Render(node(t, given))
		if (pointer == "") != (call != nil) || (pointer != "" && (len(violations) != 1 || violations[0].Pointer != pointer)) {
			t.Errorf("%s: %v %+v", given, call, violations)
		}
	}
	for _, wrong := range []string{`"args":{"type":"object","properties":{"a":{"type":"string"}}}`, `"args":` + everything, `"output":"text"`} {
		if _, c, issues := compileSource(t, surface(legacy, wrong)); c != nil || len(issues) != 1 || issues[0].Code != "manifest.schema" {
			t.Errorf("%s: %v %+v", wrong, c, issues)
		}
	}
	if _, c, _ := compileSource(t, surface(legacy, `"argv":["log"]`)); c == nil {
		t.Error("a command with a template is an ordinary one")
	}
}

func Test_3_3_Spec(t *testing.T) {
	_, c, issues := compileSource(t, surface(`{"bin":"./bin/demo","uses":["jq"],"reads":["~/.demo"],"env":{"A":"1"},"network":{"hosts":["h:1"]},"workspace":"read","isolation":"native-local"}`, `"argv":["x"],"stdin":"in"`))
	if c == nil {
		t.Fatal(issues)
	}
	call, _ := c.Render(node(t, `{}`))
	want := &adapter.Need{
		Bin: "./bin/demo", Args: []string{"x"}, Uses: []string{"jq"}, Reads: []string{"~/.demo"}, Env: []manifest.EnvVar{{Name: "A", Value: "1"}},
		Network: manifest.Network{Mode: "hosts", Hosts: []string{"h:1"}}, WorkspaceRead: true, NativeLocal: true, Stdin: []byte("in"),
	}
	if diff := cmp.Diff(want, c.Spec(call)); diff != "" {
		t.Error(diff)
	}
	want.Args, want.Stdin = nil, nil
	if diff := cmp.Diff(want, c.Spec(nil)); diff != "" {
		t.Error(diff)
	}
}
