package manifest

import (
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
)

// The modes of a binding (§8.1).
const (
	ModePublic     = "public"
	ModeUser       = "user"
	ModeLocal      = "local"
	ModeMothership = "mothership"
	ModeMock       = "mock"
)

// bindingRule is what goes together in one mode (§8.2, §8.3).
type bindingRule struct {
	hubs, kinds []string
	hub         bool // must be named
}

func ruleOf(mode string) bindingRule {
	switch mode {
	case ModePublic:
		return bindingRule{hubs: []string{"public", "none"}}
	case ModeUser:
		return bindingRule{hubs: []string{"keyring"}, kinds: []string{KindOAuth2, KindToken, KindBasic}, hub: true}
	case ModeLocal:
		return bindingRule{hubs: []string{"local-credential", "none"}, kinds: []string{KindCommand, KindFile, KindEnv}, hub: true}
	case ModeMothership:
		return bindingRule{hubs: []string{"keyring", "none"}, kinds: []string{KindTokenExchange, KindClientCredentials}, hub: true}
	case ModeMock:
		return bindingRule{hubs: []string{"none"}}
	default:
		return bindingRule{}
	}
}

// binding reads the block of §8; absent means public.
func (r reader) binding() {
	b := &r.m.Binding
	b.Mode = ModePublic
	if n := r.at.Node.Get("binding"); n != nil && n.Kind == jsondoc.Array {
		r.at.AtValue("binding", "binding.modes", "A pack declares at most one binding.")
		b.Mode = ""
		return
	}
	at, ok := r.at.Object("binding")
	if !ok {
		if r.at.Node.Has("binding") {
			b.Mode = ""
		}
		return
	}
	b.Node = at.Node
	at.Close(bindingMembers)
	b.Mode = mode(at)
	b.Hub, _ = at.Text("hub")
	b.Source = at.Node.Get("source")
	if b.Mode != "" {
		hub(at, b)
		b.From = source(at, b)
	}
	b.Inject = inject(at, r.m.Adapter)
	b.InjectFile = at.Node.Get("inject").Get("file") != nil
	if b.Mode == ModePublic && at.Node.Has("inject") {
		at.AtKey("inject", "manifest.schema", "A public binding mints nothing that could be injected.")
	}
}

// mode reads the one mode (§8.1).
func mode(at jsondoc.Cursor) string {
	if at.Node.Has("modes") {
		at.AtKey("modes", "binding.modes", "A pack declares at most one binding mode, as \"mode\".")
	}
	if n := at.Node.Get("mode"); n != nil && n.Kind == jsondoc.Array {
		at.AtValue("mode", "binding.modes", "A pack declares at most one binding mode; \"mode\" is a string.")
		return ""
	}
	if at.Node.Has("modes") && !at.Node.Has("mode") {
		return ""
	}
	return at.Choice("mode", ModePublic, ModeUser, ModeLocal, ModeMothership, ModeMock)
}

// hub checks that the hub is one of its mode (§8.2).
func hub(at jsondoc.Cursor, b *Binding) {
	rule := ruleOf(b.Mode)
	node := at.Node.Get("hub")
	switch {
	case node == nil && rule.hub:
		at.AtSelf("binding.hub", "The mode %s needs a hub: %s.", b.Mode, strings.Join(rule.hubs, " or "))
	case node == nil || node.Kind != jsondoc.String:
	case !slices.Contains(rule.hubs, b.Hub):
		at.AtValue("hub", "binding.hub", "The mode %s has the hub %s, not %s.", b.Mode, strings.Join(rule.hubs, " or "), jsondoc.Quote(b.Hub))
	}
}

// inject reads where the minted credential goes (§8.2): variables or a file of a wrap, "auto" of openapi.
func inject(at jsondoc.Cursor, adapter string) []EnvVar {
	n := at.Node.Get("inject")
	if n == nil || adapter == OpenAPI && n.Kind == jsondoc.String && n.Text == "auto" {
		return nil
	}
	if adapter == OpenAPI {
		at.AtValue("inject", "manifest.schema", "An openapi pack injects with \"auto\": where the operation's security scheme says.")
		return nil
	}
	block, ok := at.Object("inject")
	if !ok {
		return nil
	}
	block.Close(injectMembers)
	env := variables(block, "env")
	for _, v := range env {
		here := jsondoc.Cursor{Node: block.Node.Get("env"), Pointer: block.Pointer + "/env", Shape: at.Shape}
		if UnsafeInjectName(v.Name) {
			here.AtKey(v.Name, "wrap.env-name", "The environment name %s may not be set by a pack.", jsondoc.Quote(v.Name))
		}
		if bad := unknownPlaceholder(v.Value, "token", "username", "password"); bad != "" {
			here.AtValue(v.Name, "manifest.schema", "%s is none of {token}, {username} and {password}.", jsondoc.Quote(bad))
		}
	}
	return env
}

// unknownPlaceholder finds the first {name} that is not among names, or a brace without its partner; ""
// when there is none. {{ and }} are literal braces.
func unknownPlaceholder(template string, names ...string) string {
	rest := strings.ReplaceAll(template, "{{", "")
	for {
		open := strings.IndexByte(rest, '{')
		if open < 0 {
			return ""
		}
		end := strings.IndexByte(rest[open:], '}')
		if end < 0 {
			return rest[open:]
		}
		if name := rest[open+1 : open+end]; !slices.Contains(names, name) {
			return rest[open : open+end+1]
		}
		rest = rest[open+end+1:]
	}
}
