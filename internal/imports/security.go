package imports

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/order"
	"hcpx/internal/protocol"
)

// scheme is a security scheme by its name; nil when the document has none of that name.
func (b *builder) scheme(name string) *jsondoc.Node {
	n := b.follow(b.root.Get("components").Get("securitySchemes").Get(name))
	if n == nil || n.Kind != jsondoc.Object {
		return nil
	}
	return n
}

// source is the kind of credential that a scheme takes (§8.3); "" when it is none that a pack can have.
func (b *builder) source(name string) string {
	switch n := b.scheme(name); text(n, "type") {
	case "http":
		switch strings.ToLower(text(n, "scheme")) {
		case "basic":
			return manifest.KindBasic
		case "bearer":
			return manifest.KindToken
		}
	case "apiKey":
		in, key := text(n, "in"), text(n, "name")
		if in == "query" && key != "" || in == "header" && headerName(key) || in == "cookie" && token(key) {
			return manifest.KindToken
		}
	case "oauth2", "openIdConnect":
		return manifest.KindToken
	}
	return ""
}

// authorization says whether a scheme's credential goes into the one header of that name.
func (b *builder) authorization(name string) bool {
	n := b.scheme(name)
	return text(n, "type") != "apiKey" || text(n, "in") == "header" && strings.EqualFold(text(n, "name"), "Authorization")
}

// requirements are the alternatives of an operation; of schemes that share one header, as two descriptions of the same
// sign-in do, one stands for all. known is false when it asks for none but what the document does not have.
func (b *builder) requirements(op *operation) (out []*jsondoc.Node, known bool) {
	list := op.node.Get("security")
	if list == nil {
		list = b.root.Get("security")
	}
	for _, n := range items(list) {
		if n.Kind != jsondoc.Object || slices.ContainsFunc(n.Members, func(m jsondoc.Member) bool { return b.scheme(m.Key) == nil }) {
			continue
		}
		kept := &jsondoc.Node{Kind: jsondoc.Object}
		shared := -1
		for _, m := range n.Members {
			switch {
			case !b.authorization(m.Key):
				kept.Members = append(kept.Members, m)
			case shared < 0:
				shared = len(kept.Members)
				kept.Members = append(kept.Members, m)
			case b.source(m.Key) == b.source(kept.Members[shared].Key) && b.scheme(m.Key).Get("flows").Has("authorizationCode"):
				kept.Members[shared] = m
			case b.source(m.Key) != b.source(kept.Members[shared].Key):
				kept.Members = append(kept.Members, m)
			}
		}
		out = append(out, kept)
	}
	return out, len(out) > 0 || len(items(list)) == 0
}

// met says whether one credential of the kind fills all places of a requirement.
func (b *builder) met(r *jsondoc.Node, kind string) bool {
	return kind != "" && len(r.Members) > 0 && !slices.ContainsFunc(r.Members, func(m jsondoc.Member) bool { return b.source(m.Key) != kind })
}

// credential settles the one kind of credential that most of the chosen operations take, a token before a name and
// password, and what each of them is called with. One that takes neither that nor nothing is left out: no command is sent
// without what it asks for (§8.4).
func (b *builder) credential() {
	count := map[string]int{}
	for _, op := range b.chosen {
		list, _ := b.requirements(op)
		for _, kind := range [...]string{manifest.KindToken, manifest.KindBasic} {
			if slices.ContainsFunc(list, func(r *jsondoc.Node) bool { return b.met(r, kind) }) {
				count[kind]++
			}
		}
	}
	switch {
	case count[manifest.KindBasic] > count[manifest.KindToken]:
		b.kind = manifest.KindBasic
	case count[manifest.KindToken] > 0:
		b.kind = manifest.KindToken
	}
	b.mainSchemes()
	b.chosen = slices.DeleteFunc(slices.Clone(b.chosen), func(op *operation) bool { return !b.require(op) })
}

// mainSchemes orders the schemes by how many operations take them alone; the first is the pack's own.
func (b *builder) mainSchemes() {
	count := map[string]int{}
	for _, op := range b.chosen {
		list, _ := b.requirements(op)
		for _, r := range list {
			if name := single(r); name != "" && b.met(r, b.kind) {
				if count[name] == 0 {
					b.schemes = append(b.schemes, name)
				}
				count[name]++
			}
		}
	}
	order.By(b.schemes, func(x, y string) int { return count[y] - count[x] })
}

// single is the name of the one scheme that a requirement asks for.
func single(r *jsondoc.Node) string {
	if list := fields(r); len(list) == 1 {
		return list[0].Key
	}
	return ""
}

// require settles what an operation is called with: the first of the pack's schemes that it takes alone, else several
// places that one credential fills, else nothing where it is open.
func (b *builder) require(op *operation) bool {
	list, known := b.requirements(op)
	for _, name := range b.schemes {
		if i := slices.IndexFunc(list, func(r *jsondoc.Node) bool { return single(r) == name }); i >= 0 {
			op.security = list[i : i+1]
			return true
		}
	}
	if i := slices.IndexFunc(list, func(r *jsondoc.Node) bool { return b.met(r, b.kind) }); i >= 0 {
		op.security = list[i : i+1]
		b.several = append(b.several, op.key)
		return true
	}
	switch {
	case !known:
		b.leave(op, "it asks for a security scheme that is not in the document")
	case len(list) > 0 && !slices.ContainsFunc(list, func(r *jsondoc.Node) bool { return len(r.Members) == 0 }):
		var names []string
		for _, m := range list[0].Members {
			names = append(names, jsondoc.Quote(m.Key))
		}
		b.leave(op, "it asks for "+strings.Join(names, " and ")+", which the pack's credential is not")
	default:
		return true
	}
	return false
}

// main is the scheme that most operations take; "" for none.
func (b *builder) mainScheme() string {
	if len(b.schemes) == 0 {
		return ""
	}
	return b.schemes[0]
}

// binding is the manifest's block (§8), nil for a pack that needs no credential.
func (b *builder) binding() (*jsondoc.Node, *protocol.Error) {
	kind, source := b.kind, object(member("kind", jsondoc.Str(b.kind)))
	switch {
	case b.ClientID != "":
		var err *protocol.Error
		if source, err = b.oauth2(); err != nil {
			return nil, err
		}
		kind = manifest.KindOAuth2
	case kind == "":
		b.report.Credential = manifest.ModePublic
		return nil, nil
	}
	b.report.Credential = kind
	return object(member("mode", jsondoc.Str(manifest.ModeUser)), member("hub", jsondoc.Str("keyring")), member("source", source),
		member("inject", jsondoc.Str("auto"))), nil
}

// oauth2 is the source for a registered client: the authorization code flow of the pack's scheme.
func (b *builder) oauth2() (*jsondoc.Node, *protocol.Error) {
	flow := b.scheme(b.mainScheme()).Get("flows").Get("authorizationCode")
	auth, token := text(flow, "authorizationUrl"), text(flow, "tokenUrl")
	if !b.endpoint(auth) || !b.endpoint(token) {
		return nil, protocol.Fail(protocol.UsageError, "--client-id is for a document whose operations take OAuth 2.0 by an authorization code at https addresses; this one's do not.").
			WithHint("leave --client-id out; connect then asks for a token")
	}
	var scopes []string
	for _, op := range b.chosen {
		for _, r := range op.security {
			for _, s := range items(r.Get(b.mainScheme())) {
				if s.Kind == jsondoc.String && scopeWord(s.Text) && !slices.Contains(scopes, s.Text) {
					scopes = append(scopes, s.Text)
				}
			}
		}
	}
	slices.Sort(scopes)
	return object(member("kind", jsondoc.Str(manifest.KindOAuth2)), member("flow", jsondoc.Str(manifest.FlowCode)),
		member("auth_url", jsondoc.Str(auth)), member("token_url", jsondoc.Str(token)), member("client_id", jsondoc.Str(b.ClientID)),
		member("scopes", wordList(scopes))), nil
}

// endpoint says whether an address is one that a pack may name for consent (§8.3).
func (b *builder) endpoint(address string) bool {
	u, err := url.Parse(address)
	_, ok := usable(address, "")
	return err == nil && ok && u.Fragment == ""
}

func scopeWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' })
}

// schemesUsed are the schemes of the chosen operations, as the pack's document has them.
func (b *builder) schemesUsed() *jsondoc.Node {
	out := &jsondoc.Node{Kind: jsondoc.Object}
	for _, op := range b.chosen {
		for _, r := range op.security {
			for _, m := range r.Members {
				if !out.Has(m.Key) {
					out.Members = append(out.Members, member(m.Key, schemeCopy(b.scheme(m.Key))))
				}
			}
		}
	}
	if len(out.Members) == 0 {
		return nil
	}
	return out
}

// schemeCopy is what a request needs of a scheme.
func schemeCopy(n *jsondoc.Node) *jsondoc.Node {
	out := &jsondoc.Node{Kind: jsondoc.Object}
	for _, key := range [...]string{"type", "scheme", "bearerFormat", "name", "in", "openIdConnectUrl"} {
		if s := text(n, key); s != "" {
			out.Members = append(out.Members, member(key, jsondoc.Str(s)))
		}
	}
	flows := &jsondoc.Node{Kind: jsondoc.Object}
	for _, f := range fields(n.Get("flows")) {
		flows.Members = append(flows.Members, member(f.Key, object(member("authorizationUrl", word(text(f.Value, "authorizationUrl"))),
			member("tokenUrl", word(text(f.Value, "tokenUrl"))), member("refreshUrl", word(text(f.Value, "refreshUrl"))), member("scopes", jsondoc.Obj()))))
	}
	if text(n, "type") == "oauth2" {
		out.Members = append(out.Members, member("flows", flows))
	}
	return out
}

// credentialTold says what a person must know of the credential.
func (b *builder) credentialTold() []string {
	var out []string
	switch b.report.Credential {
	case manifest.ModePublic:
		out = append(out, "Credential: the document asks for none. If the API wants one, give the manifest a binding (§8).")
	case manifest.KindOAuth2:
		out = append(out, "Credential: connect opens the API's consent page; its scopes stand in the manifest's binding.")
	case manifest.KindBasic:
		out = append(out, fmt.Sprintf("Credential: connect asks for a name and password, for the scheme %s.", jsondoc.Quote(b.mainScheme())))
	default:
		said := fmt.Sprintf("Credential: connect asks for a token, for the scheme %s.", jsondoc.Quote(b.mainScheme()))
		if b.mainScheme() == "" {
			said = "Credential: connect asks for a token."
		}
		if text(b.scheme(b.mainScheme()), "type") == "oauth2" {
			said += " With --client-id of a client registered there it opens the API's consent page instead."
		}
		out = append(out, said)
	}
	if len(b.several) > 0 {
		out = append(out, "These ask for several credentials at once and get the one in each place: "+listed(b.several)+".")
	}
	return out
}

// listed names some of a list.
func listed(list []string) string {
	const most = 12
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
