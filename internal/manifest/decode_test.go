package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// wrapText is a manifest without a fault; the tests break one thing in it.
const wrapText = `{
  "hcp": { "version": "1.1" },
  "id": "transit",
  "version": "1.2.0",
  "name": "City transit",
  "summary": "Plan trips and read departures.",
  "adapter": "wrap",
  "wrap": { "bin": "transit", "uses": ["jq"], "env": { "TRANSIT_REGION": "eu" }, "network": { "hosts": ["api.example.org:443"] } },
  "binding": { "mode": "user", "hub": "keyring", "source": { "kind": "token" }, "inject": { "env": { "GH_TOKEN": "{token}" } } },
  "verbs": {
    "trip.plan": {
      "summary": "Plan a trip",
      "args": { "type": "object", "properties": { "from": { "type": "string" }, "limit": { "type": "integer" } }, "required": ["from"] },
      "timeout": "30s",
      "examples": [ { "args": { "from": "north" } } ],
      "argv": ["plan", "{from}"]
    }
  },
  "triggers": {
    "trip.delayed": { "summary": "A trip is late", "source": { "kind": "webhook", "verify": "github" } }
  }
}
`

// found lists what Decode and Check say, one issue a line.
func found(src string) []string {
	m, issues := Decode([]byte(src))
	if m != nil {
		issues = append(issues, m.Check()...)
	}
	protocol.SortIssues(issues)
	var out []string
	for _, i := range issues {
		if m != nil && !placed(m, i) {
			out = append(out, "not at its key or value:")
		}
		out = append(out, fmt.Sprintf("%d:%d %s %s", i.Line, i.Column, i.Code, i.Pointer))
	}
	return out
}

// placed says whether the line and column of an issue are those of what its pointer names: a value or its key.
func placed(m *Manifest, i protocol.Issue) bool {
	at := func(offset int) bool {
		line, column := jsondoc.Place(m.Src, offset)
		return line == i.Line && column == i.Column
	}
	value := m.Root.Lookup(i.Pointer)
	if value != nil && at(value.Offset) {
		return true
	}
	tokens, _ := jsondoc.Tokens(i.Pointer)
	if len(tokens) == 0 {
		return false
	}
	parent := m.Root.Lookup(jsondoc.Pointer(tokens[:len(tokens)-1]...))
	return parent != nil && slices.ContainsFunc(parent.Members, func(m jsondoc.Member) bool { return m.Key == tokens[len(tokens)-1] && at(m.Offset) })
}

func TestDecodeReadsAManifest(t *testing.T) {
	if got := found(wrapText); got != nil {
		t.Fatalf("issues: %v", got)
	}
	m, _ := Decode([]byte(wrapText))
	if m.ID != "transit" || m.Version != "1.2.0" || m.HCPVersion != "1.1" || m.Plane != "runtime" || m.Adapter != Wrap {
		t.Errorf("identity: %+v", m)
	}
	want := &WrapBlock{Node: m.Root.Get("wrap"), Bin: "transit", Uses: []string{"jq"}, Env: []EnvVar{{"TRANSIT_REGION", "eu"}},
		Network: Network{Mode: "hosts", Hosts: []string{"api.example.org:443"}}, Isolation: "sandbox"}
	if d := cmp.Diff(want, m.Wrap); d != "" {
		t.Error(d)
	}
	if b := m.Binding; b.Mode != ModeUser || b.Hub != "keyring" || len(b.Inject) != 1 || b.Inject[0] != (EnvVar{"GH_TOKEN", "{token}"}) {
		t.Errorf("binding: %+v", b)
	}
	c := m.Command("trip.plan")
	if c == nil || c.Timeout != 30*time.Second || len(c.Examples) != 1 || c.Summary != "Plan a trip" || wrapText[c.KeyOffset:c.KeyOffset+11] != `"trip.plan"` {
		t.Errorf("command: %+v", c)
	}
	if m.Command("none") != nil {
		t.Error("a command that is not declared was found")
	}
	if len(m.Triggers) != 1 || m.Triggers[0].Key != "trip.delayed" {
		t.Errorf("triggers: %+v", m.Triggers)
	}
}

func TestDecodeTakesDefaults(t *testing.T) {
	src := `{"hcp":{"version":"1.0"},"id":"echo","version":"1.0.0","summary":"Say it.","adapter":"composite","verbs":{"say":{"summary":"Say","steps":[]}}}`
	if got := found(src); got != nil {
		t.Fatalf("issues: %v", got)
	}
	m, _ := Decode([]byte(src))
	if m.Binding.Mode != ModePublic || m.Binding.Node != nil || m.Commands[0].Timeout != time.Minute || m.Wrap != nil {
		t.Errorf("%+v", m)
	}
}

// broken is one way to break wrapText: old is replaced by new.
type broken struct{ name, old, new, want string }

func runBroken(t *testing.T, tests []broken) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Count(wrapText, tt.old) != 1 {
				t.Fatalf("%q stands %d times in the manifest", tt.old, strings.Count(wrapText, tt.old))
			}
			got := strings.Join(found(strings.Replace(wrapText, tt.old, tt.new, 1)), "; ")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDecodePlacesEveryFault(t *testing.T) {
	runBroken(t, []broken{
		{"§2.1 trailing text", "  }\n}\n", "  }\n}\nx", `23:1 json.syntax `},
		{"§2.1 duplicate key", `"name": "City transit"`, `"name": "City", "name": "City"`, `5:19 json.duplicate-key /name`},
		{"§2.1 BOM", "{\n  \"hcp\"", "\ufeff{\n  \"hcp\"", `1:1 json.encoding `},
		{"§3 hcp missing", `  "hcp": { "version": "1.1" },` + "\n", "", `1:1 manifest.schema `},
		{"§3 hcp.version missing", `{ "version": "1.1" }`, `{ }`, `2:10 manifest.schema /hcp`},
		{"§13.2 another major", `"1.1"`, `"2.0"`, `2:23 manifest.version /hcp/version`},
		{"§13.2 any 1.x", `"1.1"`, `"1.907"`, ``},
		{"§13.1 minor is a number", `"1.1"`, `"1.x"`, `2:23 manifest.version /hcp/version`},
		{"§3 id missing", `  "id": "transit",` + "\n", "", `1:1 manifest.schema `},
		{"§3 id no string", `"id": "transit"`, `"id": 7`, `3:9 manifest.schema /id`},
		{"§2.2 id form", `"id": "transit"`, `"id": "Transit"`, `3:9 manifest.id /id`},
		{"§2.2 reserved id", `"id": "transit"`, `"id": "doctor"`, `3:9 manifest.reserved-id /id`},
		{"§2.2 bootstrap id", `"id": "transit"`, `"id": "hcp-cli"`, `3:9 manifest.reserved-id /id`},
		{"§3 version no SemVer", `"version": "1.2.0"`, `"version": "1.2"`, `4:14 manifest.schema /version`},
		{"§3 version with v", `"version": "1.2.0"`, `"version": "v1.2.0"`, `4:14 manifest.schema /version`},
		{"§3 version pre-release", `"version": "1.2.0"`, `"version": "1.2.0-rc.1+b7"`, ``},
		{"§3 name too long", `"City transit"`, `"` + strings.Repeat("é", 81) + `"`, `5:11 manifest.schema /name`},
		{"§3 name of 80", `"City transit"`, `"` + strings.Repeat("é", 80) + `"`, ``},
		{"§3 summary missing", `  "summary": "Plan trips and read departures.",` + "\n", "", `1:1 manifest.schema `},
		{"§3 summary of two lines", `read departures.`, `read\ndepartures.`, `6:14 manifest.schema /summary`},
		{"§3 summary too long", `read departures.`, strings.Repeat("x", 200), `6:14 manifest.schema /summary`},
		{"§2.5 plane", `"adapter": "wrap"`, `"plane": "root", "adapter": "wrap"`, `7:12 manifest.schema /plane`},
		{"§13.2 unknown member", `"adapter": "wrap"`, `"colour": 1, "adapter": "wrap"`, `7:3 manifest.unknown-field /colour`},
		{"§13.2 unknown member in wrap", `"bin": "transit"`, `"bin": "transit", "shell": true`, `8:31 manifest.unknown-field /wrap/shell`},
		{"§13.2 unknown member in a command", `"timeout": "30s"`, `"retry": 3`, `14:7 manifest.unknown-field /verbs/trip.plan/retry`},
		{"§13.2 unknown member in hcp", `{ "version": "1.1" }`, `{ "version": "1.1", "x/y": 1 }`, `2:30 manifest.unknown-field /hcp/x~1y`},
		{"§13.2 not inside schemas", `"limit": { "type": "integer" }`, `"limit": { "type": "integer", "x-ui": 1 }`, ``},
	})
}

func TestAdapterBlocks(t *testing.T) {
	runBroken(t, []broken{
		{"§3 adapter missing", `  "adapter": "wrap",` + "\n", "", `1:1 manifest.schema `},
		{"§3 adapter unknown", `"adapter": "wrap"`, `"adapter": "shell"`, `7:14 manifest.schema /adapter`},
		{"§3 block missing", `"wrap": {`, `"warp": {`, `1:1 manifest.adapter-block ; 8:3 manifest.unknown-field /warp`},
		{"§3 one block too many", `"adapter": "wrap"`, `"adapter": "wrap", "openapi": {}`, `7:22 manifest.adapter-block /openapi`},
		{"§3 composite has no block", `"adapter": "wrap"`, `"adapter": "composite"`, `8:3 manifest.adapter-block /wrap; 16:7 manifest.unknown-field /verbs/trip.plan/argv`},
		{"§3.3 bin missing", `"bin": "transit", `, ``, `8:11 manifest.schema /wrap`},
		{"§3.3 uses", `["jq"]`, `["jq", 1]`, `8:46 manifest.schema /wrap/uses/1`},
		{"§3.3 env", `"eu"`, `1`, `8:74 manifest.schema /wrap/env/TRANSIT_REGION`},
		{"§3.3 network word", `{ "hosts": ["api.example.org:443"] }`, `"open"`, `8:93 manifest.schema /wrap/network`},
		{"§3.3 host without a port", `api.example.org:443`, `api.example.org`, `8:105 manifest.schema /wrap/network/hosts/0`},
		{"§3.3 network full", `{ "hosts": ["api.example.org:443"] }`, `"full"`, ``},
		{"§3.3 isolation", `"bin": "transit"`, `"bin": "transit", "isolation": "none"`, `8:44 manifest.schema /wrap/isolation`},
		{"§3.3 workspace", `"bin": "transit"`, `"bin": "transit", "workspace": "write"`, `8:44 manifest.schema /wrap/workspace`},
		{"§3.3 maxArgv", `"bin": "transit"`, `"bin": "transit", "maxArgv": 0`, `8:42 manifest.schema /wrap/maxArgv`},
	})
}

func TestCommands(t *testing.T) {
	runBroken(t, []broken{
		{"§3.1 key form", `"trip.plan": {`, `"Trip": {`, `11:5 manifest.schema /verbs/Trip`},
		{"§3.2 summary missing", `      "summary": "Plan a trip",` + "\n", "", `11:18 manifest.schema /verbs/trip.plan`},
		{"§3.2 timeout zero", `"30s"`, `"0s"`, `14:18 manifest.schema /verbs/trip.plan/timeout`},
		{"§3.2 timeout over an hour", `"30s"`, `"61m"`, `14:18 manifest.schema /verbs/trip.plan/timeout`},
		{"§3.2 timeout of an hour", `"30s"`, `"1h"`, ``},
		{"§3.2 timeout without unit", `"30s"`, `"30"`, `14:18 manifest.schema /verbs/trip.plan/timeout`},
		{"§3.2 examples", `[ { "args": { "from": "north" } } ]`, `{}`, `15:19 manifest.schema /verbs/trip.plan/examples`},
		{"§3.2 example misses the schema", `{ "from": "north" }`, `{ "from": 1 }`, `15:41 manifest.schema /verbs/trip.plan/examples/0/args/from`},
		{"§3.2 example lacks a member", `{ "from": "north" }`, `{ }`, `15:31 manifest.schema /verbs/trip.plan/examples/0/args`},
		{"§3.1 tool names collide", `"trip.plan": {`, `"trip_plan": { "summary": "x" }, "trip.plan": {`, `11:38 manifest.tool-name-collision /verbs/trip.plan`},
		{"§12.2 tool name long", `"trip.plan": {`, `"` + strings.Repeat("a", 45) + `": {`, `11:5 manifest.tool-name-long /verbs/` + strings.Repeat("a", 45)},
		{"§12.2 tool name of 53", `"trip.plan": {`, `"` + strings.Repeat("a", 44) + `": {`, ``},
		{"§3.1 tool name too long", `"trip.plan": {`, `"` + strings.Repeat("a", 56) + `": {`, `11:5 manifest.tool-name-length /verbs/` + strings.Repeat("a", 56)},
		{"§12.1 flags collide", `"limit": {`, `"From": {`, `13:81 manifest.flag-collision /verbs/trip.plan/args/properties/From`},
		{"§12.1 a boolean's no", `"from": { "type": "string" }, "limit": {`, `"from": { "type": "boolean" }, "no_from": {`, `13:82 manifest.flag-collision /verbs/trip.plan/args/properties/no_from; 15:41 manifest.schema /verbs/trip.plan/examples/0/args/from`},
		{"§12.2 reserved argument", `"limit": {`, `"hcp_limit": {`, `13:81 manifest.reserved-arg /verbs/trip.plan/args/properties/hcp_limit`},
		{"§3.4 no commands", `"verbs": {`, `"verbs": {}, "spare": {`, `10:12 manifest.schema /verbs; 10:16 manifest.unknown-field /spare`},
		{"§3 verbs missing", `"verbs": {`, `"spare": {`, `1:1 manifest.schema ; 10:3 manifest.unknown-field /spare`},
	})
}

func TestSenseOnly(t *testing.T) {
	const text = `{"hcp":{"version":"1.1"},"id":"herald","version":"1.0.0","summary":"Tell.","adapter":"sense_only"%s}`
	for name, tt := range map[string][2]string{
		"§3.4 triggers and no commands": {`,"triggers":{"done":{"summary":"Done","source":{"kind":"push"}}}`, ""},
		"§3.4 empty verbs":              {`,"verbs":{},"triggers":{"done":{"summary":"Done","source":{"kind":"push"}}}`, ""},
		"§3.4 no triggers":              {``, "1:1 manifest.schema "},
		"§3.4 a command":                {`,"verbs":{"a":{"summary":"A"}},"triggers":{"done":{"summary":"Done","source":{"kind":"push"}}}`, "1:107 manifest.schema /verbs"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(found(fmt.Sprintf(text, tt[0])), "; "); got != tt[1] {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestBindings(t *testing.T) {
	const old = `{ "mode": "user", "hub": "keyring", "source": { "kind": "token" }, "inject": { "env": { "GH_TOKEN": "{token}" } } }`
	case1 := func(name, binding, want string) broken { return broken{name, old, binding, want} }
	runBroken(t, []broken{
		case1("§8.1 mode an array", `{ "mode": ["user", "mock"] }`, `9:24 binding.modes /binding/mode`),
		case1("§8.1 modes", `{ "modes": ["user"] }`, `9:16 binding.modes /binding/modes`),
		case1("§8.1 bindings", `[ { "mode": "user" } ]`, `9:14 binding.modes /binding`),
		case1("§8.1 mode unknown", `{ "mode": "root" }`, `9:24 manifest.schema /binding/mode`),
		case1("§8.1 absent mode", `{ }`, ``),
		case1("§8.2 wrong hub", `{ "mode": "user", "hub": "none", "source": { "kind": "token" } }`, `9:39 binding.hub /binding/hub`),
		case1("§8.2 no hub", `{ "mode": "user", "source": { "kind": "token" } }`, `9:14 binding.hub /binding`),
		case1("§8.2 none keeps no secret", `{ "mode": "mothership", "hub": "none", "source": { "kind": "client_credentials", "token_url": "https://a.example/t", "client_id": "c" } }`, `9:45 binding.hub /binding/hub`),
		case1("§8.2 none and an exchange of what is asked for", `{ "mode": "mothership", "hub": "none", "source": { "kind": "token_exchange", "token_url": "https://a.example/t" } }`, `9:45 binding.hub /binding/hub`),
		case1("§8.2 none and an exchange of what lies there", `{ "mode": "mothership", "hub": "none", "source": { "kind": "token_exchange", "token_url": "https://a.example/t", "subject_file": "/run/token" } }`, ``),
		case1("§8.3 source missing", `{ "mode": "user", "hub": "keyring" }`, `9:14 binding.source /binding`),
		case1("§8.3 local and none", `{ "mode": "local", "hub": "none" }`, ``),
		case1("§8.3 kind of another mode", `{ "mode": "user", "hub": "keyring", "source": { "kind": "command" } }`, `9:70 binding.source /binding/source/kind`),
		case1("§8.3 kind missing", `{ "mode": "user", "hub": "keyring", "source": { } }`, `9:60 binding.source /binding/source`),
		case1("§8.3 plain http", `{ "mode": "user", "hub": "keyring", "source": { "kind": "oauth2", "token_url": "http://a.example/t", "auth_url": "https://a.example/d", "client_id": "c" } }`, `9:93 binding.source /binding/source/token_url`),
		case1("§8.3 loopback", `{ "mode": "user", "hub": "keyring", "source": { "kind": "oauth2", "token_url": "http://127.0.0.1:7/t", "auth_url": "http://[::1]:7/d", "client_id": "c" } }`, ``),
		case1("§8.3 public has no source", `{ "mode": "public", "source": { "kind": "token" } }`, `9:34 binding.source /binding/source`),
		case1("§10.2 inject name", `{ "mode": "mock", "hub": "none", "inject": { "env": { "LD_PRELOAD": "{token}" } } }`, `9:68 wrap.env-name /binding/inject/env/LD_PRELOAD`),
		case1("§8.2 inject placeholder", `{ "mode": "mock", "hub": "none", "inject": { "env": { "A": "{tokn}" } } }`, `9:73 manifest.schema /binding/inject/env/A`),
		case1("§8.2 inject file", `{ "mode": "mock", "hub": "none", "inject": { "env": { "A": "{token}" }, "file": { "KEY_FILE": "key = {token}\n", "GOOGLE_APPLICATION_CREDENTIALS": "{{}}" } } }`, ``),
		case1("§10.2 inject file name", `{ "mode": "mock", "hub": "none", "inject": { "file": { "LD_PRELOAD": "{token}" } } }`, `9:69 wrap.env-name /binding/inject/file/LD_PRELOAD`),
		case1("§8.2 inject file as a path", `{ "mode": "mock", "hub": "none", "inject": { "file": { "../key": "{token}" } } }`, `9:69 wrap.env-name /binding/inject/file/..~1key`),
		case1("§8.2 inject file placeholder", `{ "mode": "mock", "hub": "none", "inject": { "file": { "A": "{tokn}" } } }`, `9:74 manifest.schema /binding/inject/file/A`),
		case1("§8.2 inject file of another form", `{ "mode": "mock", "hub": "none", "inject": { "file": { "A": { "path": "x" } } } }`, `9:74 manifest.schema /binding/inject/file/A`),
		case1("§8.2 inject twice", `{ "mode": "mock", "hub": "none", "inject": { "env": { "A": "{token}" }, "file": { "A": "{token}" } } }`, `9:96 manifest.schema /binding/inject/file/A`),
		case1("§13.2 unknown member", `{ "mode": "mock", "hub": "none", "ttl": 1 }`, `9:47 manifest.unknown-field /binding/ttl`),
	})
}

func TestTriggers(t *testing.T) {
	const old = `{ "kind": "webhook", "verify": "github" }`
	source := func(name, text, want string) broken { return broken{name, old, text, want} }
	runBroken(t, []broken{
		{"§7.1 stimulus form", `"trip.delayed": {`, `"Trip": {`, `20:5 manifest.schema /triggers/Trip`},
		{"§7.1 interval on the trigger", `"summary": "A trip is late"`, `"summary": "A trip is late", "interval": "5m"`, `20:52 sense.polling /triggers/trip.delayed/interval`},
		{"§7.1 source missing", `, "source": ` + old, ``, `20:21 sense.source /triggers/trip.delayed`},
		source("§7.1 cron on the source", `{ "kind": "push", "cron": "* * * * *" }`, `20:80 sense.polling /triggers/trip.delayed/source/cron`),
		source("§7.1 poll in a name", `{ "kind": "push", "poll_url": "https://a.example" }`, `20:80 sense.polling /triggers/trip.delayed/source/poll_url`),
		source("§7.1 source that polls", `{ "kind": "polling" }`, `20:72 sense.polling /triggers/trip.delayed/source/kind`),
		source("§7.1 no object", `"webhook"`, `20:62 sense.source /triggers/trip.delayed/source`),
		source("§7.1 kind unknown", `{ "kind": "mail" }`, `20:72 sense.source /triggers/trip.delayed/source/kind`),
		source("§7.1 kind missing", `{ }`, `20:62 sense.source /triggers/trip.delayed/source`),
		source("§7.1 verify missing", `{ "kind": "webhook" }`, `20:62 sense.source /triggers/trip.delayed/source`),
		source("§7.1 verify none outside mock", `{ "kind": "webhook", "verify": "none" }`, `20:93 sense.source /triggers/trip.delayed/source/verify`),
		source("§7.1 hmac needs its header", `{ "kind": "webhook", "verify": "hmac-sha256" }`, `20:62 sense.source /triggers/trip.delayed/source`),
		source("§7.1 hmac", `{ "kind": "webhook", "verify": "hmac-sha256", "header": "X-Signature" }`, ``),
		source("§7.1 stream", `{ "kind": "stream", "argv": ["transit", "watch"] }`, ``),
		source("§7.1 stream without argv", `{ "kind": "stream", "argv": "watch" }`, `20:90 sense.source /triggers/trip.delayed/source/argv`),
		source("§7.1 file outside", `{ "kind": "file", "path": "../x" }`, `20:88 sense.source /triggers/trip.delayed/source/path`),
		source("§7.1 file", `{ "kind": "file", "path": "inbox/*.json" }`, ``),
		source("§7.1 payload schema", `{ "kind": "push" }, "payload": { "type": "text" }`, `20:103 manifest.args-schema /triggers/trip.delayed/payload/type`),
	})
}

func Test_2_6_MustUnderstand(t *testing.T) {
	add := func(root, command, trigger string) *Manifest {
		src := strings.Replace(wrapText, `"adapter": "wrap"`, root+`"adapter": "wrap"`, 1)
		src = strings.Replace(src, `"timeout": "30s"`, command+`"timeout": "30s"`, 1)
		src = strings.Replace(src, `"summary": "A trip is late"`, trigger+`"summary": "A trip is late"`, 1)
		m, issues := Decode([]byte(src))
		if len(issues) > 0 {
			t.Fatalf("%v", issues)
		}
		return m
	}
	const must = `"must_understand": ["quota", "timeout"], `
	for name, tt := range map[string]struct {
		m                      *Manifest
		pack, command, trigger []string
	}{
		"named and nowhere":         {add(must, "", ""), []string{"quota"}, nil, nil},
		"named and at the root":     {add(must+`"quota": 1, `, "", ""), []string{"quota"}, nil, nil},
		"named and in a command":    {add(must, `"quota": 1, `, ""), nil, []string{"quota"}, nil},
		"named and in a trigger":    {add(must, "", `"quota": 1, `), nil, nil, []string{"quota"}},
		"named by the command":      {add("", must+`"quota": 1, `, ""), nil, []string{"quota"}, nil},
		"named by the command only": {add("", must, ""), nil, []string{"quota"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := [][]string{tt.m.Unmet, tt.m.Commands[0].Unmet, tt.m.Triggers[0].Unmet}
			if d := cmp.Diff([][]string{tt.pack, tt.command, tt.trigger}, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEveryFaultIsReported(t *testing.T) {
	got := found(`{"hcp":{"version":"3"},"id":"A","version":"x","summary":"","adapter":"wrap","wrap":{"bin":1},"verbs":{"A":{"timeout":"x"},"b":[]}}`)
	if len(got) != 9 {
		t.Errorf("%d issues:\n%s", len(got), strings.Join(got, "\n"))
	}
}

func TestNoManifest(t *testing.T) {
	for src, want := range map[string]string{"": "1:1 json.syntax ", "[]": "1:1 manifest.schema ", " 7": "1:2 manifest.schema ", strings.Repeat("[", 200): "1:129 json.syntax " + strings.Repeat("/0", 128)} {
		m, _ := Decode([]byte(src))
		if got := strings.Join(found(src), "; "); m != nil || got != want {
			t.Errorf("%.20q: %v, %s", src, m, got)
		}
	}
}

func Test_2_2_LiftFreesTheBootstrapIDOnly(t *testing.T) {
	for id, want := range map[string]int{"hcp-cli": 0, "doctor": 1} {
		_, issues := Decode([]byte(strings.Replace(wrapText, `"id": "transit"`, `"id": "`+id+`"`, 1)))
		if got := Lift(issues); len(got) != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(wrapText))
	f.Add([]byte(`{"verbs":{"a":{"args":{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#"}}},"examples":[{"args":{}}]}}}`))
	f.Add([]byte(`{"binding":{"mode":[],"source":7,"inject":"auto"},"triggers":{"":{"source":{"kind":null}}},"must_understand":[1,"a"]}`))
	f.Add([]byte(`{"verbs":{"a":{"args":{"properties":{"":{"type":"boolean"},"no-":{"enum":[]}},"allOf":[true]},"result":{"pattern":"("}}}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, issues := Decode(src)
		if m == nil {
			if len(issues) == 0 {
				t.Fatal("no manifest, and no word about it")
			}
			return
		}
		issues = append(issues, m.Check()...)
		unique := !slices.ContainsFunc(issues, func(i protocol.Issue) bool { return i.Code == "json.duplicate-key" })
		for _, i := range issues {
			if i.Line < 1 || i.Column < 1 || i.Section == "" || i.Message == "" {
				t.Fatalf("%+v", i)
			}
			if unique && !placed(m, i) {
				t.Fatalf("%+v is not at its key or value", i)
			}
		}
		for _, c := range m.Commands {
			m.Nearest(c.Key + "x")
			if s, err := c.Args(); err == nil {
				s.Properties()
				s.Validate(s.Defaults(s.Example()))
			}
		}
	})
}
