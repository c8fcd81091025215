package manifest

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
)

// The kinds of a source (§8.3).
const (
	KindOAuth2            = "oauth2"
	KindToken             = "token"
	KindBasic             = "basic"
	KindCommand           = "command"
	KindFile              = "file"
	KindEnv               = "env"
	KindTokenExchange     = "token_exchange"
	KindClientCredentials = "client_credentials"
)

// How a client says who it is to a token endpoint.
const (
	ClientNone  = "none"  // a public client: its id alone
	ClientBasic = "basic" // id and secret in the Authorization header
	ClientPost  = "post"  // id and secret in the body
)

// The flows of oauth2.
const (
	FlowDevice = "device"
	FlowCode   = "code"
)

// Source is where a credential comes from (§8.3), complete and valid. What its kind does not have is zero.
type Source struct {
	Kind string

	// oauth2, client_credentials, token_exchange
	Flow       string // device | code
	AuthURL    string // of the device, or of the browser
	TokenURL   string
	Issuer     string // what an answer in the browser must name itself (RFC 9207), when set
	ClientID   string
	ClientAuth string
	Scopes     []string
	Audience   string
	Resource   string

	// token_exchange: what is exchanged, from a file or variable of the machine; with neither, connect asks for it
	SubjectFile, SubjectEnv    string
	SubjectType, RequestedType string

	Argv     []string // command
	Path     string   // file
	Pointer  string   // file: into its JSON; "" = its first line
	Name     string   // env
	Username string   // basic; "" = connect asks for it
}

// Asks says whether connect asks a person for a secret of the source.
func (s *Source) Asks() bool {
	switch s.Kind {
	case KindToken, KindBasic:
		return true
	case KindTokenExchange:
		return s.ClientAuth != ClientNone || s.SubjectFile == "" && s.SubjectEnv == ""
	default:
		return s.ClientAuth != "" && s.ClientAuth != ClientNone
	}
}

// Keeps says whether the source has a secret to keep (§8.2).
func (s *Source) Keeps() bool { return s.Kind == KindOAuth2 || s.Asks() }

// sourceRule is what a kind has beside "kind".
type sourceRule struct {
	kind           string
	must, may      []string
	flows, clients []string // the first is the default
}

// sourceRules are all kinds. A member of one kind in another is a mistake, and not one that may be ignored.
func sourceRules() []sourceRule {
	clients := []string{ClientNone, ClientBasic, ClientPost}
	return []sourceRule{
		{kind: KindOAuth2, must: []string{"auth_url", "token_url", "client_id"}, may: []string{"flow", "issuer", "client_auth", "scopes", "audience", "resource"},
			flows: []string{FlowDevice, FlowCode}, clients: clients},
		{kind: KindToken},
		{kind: KindBasic, may: []string{"username"}},
		{kind: KindCommand, must: []string{"argv"}},
		{kind: KindFile, must: []string{"path"}, may: []string{"pointer"}},
		{kind: KindEnv, must: []string{"name"}},
		{kind: KindClientCredentials, must: []string{"token_url", "client_id"}, may: []string{"client_auth", "scopes", "audience", "resource"},
			clients: []string{ClientBasic, ClientPost}},
		{kind: KindTokenExchange, must: []string{"token_url"}, may: []string{"client_id", "client_auth", "scopes", "audience", "resource",
			"subject_file", "subject_env", "subject_type", "requested_type"}, clients: clients},
	}
}

// bindingSourceMembers are the members of any kind.
func bindingSourceMembers() []string {
	all := []string{"kind"}
	for _, r := range sourceRules() {
		all = append(append(all, r.must...), r.may...)
	}
	return all
}

// tokenType is the type of an access token, RFC 8693's default here for what is given and what is asked.
const tokenType = "urn:ietf:params:oauth:token-type:access_token"

// source decodes the source strictly: nil with a fault where anything is missing, of the wrong form, or of another
// kind (§8.3).
func source(at jsondoc.Cursor, b *Binding) *Source {
	rule := ruleOf(b.Mode)
	if b.Source == nil {
		// A local pack with hub none mints nothing, as the bootstrap pack.
		if len(rule.kinds) > 0 && b.Hub != "none" || b.Mode == ModeMothership {
			at.AtSelf("binding.source", "The mode %s needs a source: %s.", b.Mode, strings.Join(rule.kinds, ", "))
		}
		return nil
	}
	src, ok := at.Object("source")
	if !ok {
		return nil
	}
	if len(rule.kinds) == 0 {
		at.AtKey("source", "binding.source", "The mode %s has no source.", b.Mode)
		return nil
	}
	kind := src.Node.Get("kind")
	switch {
	case kind == nil:
		src.AtSelf("binding.source", "A source has a kind: %s.", strings.Join(rule.kinds, ", "))
		return nil
	case kind.Kind != jsondoc.String || !slices.Contains(rule.kinds, kind.Text):
		src.AtValue("kind", "binding.source", "The mode %s has a source of kind %s.", b.Mode, strings.Join(rule.kinds, ", "))
		return nil
	}
	before := len(at.Shape.Faults)
	r := sourceReader{Cursor: src, s: &Source{Kind: kind.Text}}
	for _, rule := range sourceRules() {
		if rule.kind == kind.Text {
			r.read(rule)
		}
	}
	if slices.ContainsFunc(at.Shape.Faults[before:], func(f jsondoc.Fault) bool { return f.Code != at.Shape.Unknown }) {
		return nil
	}
	if b.Hub == "none" && slices.Contains(rule.hubs, b.Hub) && r.s.Keeps() {
		at.AtValue("hub", "binding.hub", "The hub none keeps nothing, and the source %s has a secret to keep.", kind.Text)
		return nil
	}
	return r.s
}

// sourceReader reads the members of one source.
type sourceReader struct {
	jsondoc.Cursor
	s *Source
}

func (r sourceReader) bad(key, format string, args ...any) {
	r.AtValue(key, "binding.source", format, args...)
}

func (r sourceReader) read(rule sourceRule) {
	r.Close(bindingSourceMembers())
	for _, m := range r.Node.Members {
		mine := m.Key == "kind" || slices.Contains(rule.must, m.Key) || slices.Contains(rule.may, m.Key)
		if !mine && slices.Contains(bindingSourceMembers(), m.Key) {
			r.AtKey(m.Key, "binding.source", "A source of kind %s has no member %s.", rule.kind, jsondoc.Quote(m.Key))
		}
	}
	for _, key := range rule.must {
		if !r.Node.Has(key) {
			r.AtSelf("binding.source", "A source of kind %s needs the member %s.", rule.kind, jsondoc.Quote(key))
		}
	}
	s := r.s
	if len(rule.flows) > 0 {
		s.Flow = r.oneOf("flow", rule.flows)
	}
	s.AuthURL, s.TokenURL, s.Issuer = r.address("auth_url"), r.address("token_url"), r.address("issuer")
	s.ClientID, s.Audience, s.Resource = r.word("client_id"), r.word("audience"), r.word("resource")
	if len(rule.clients) > 0 {
		s.ClientAuth = r.oneOf("client_auth", rule.clients)
	}
	s.Scopes = r.scopes()
	s.Username, s.Pointer = r.word("username"), r.pointer()
	s.Argv, s.Path, s.Name = r.argv(), r.path("path"), r.name("name")
	if rule.kind == KindTokenExchange {
		r.exchange()
	}
}

// exchange reads what only token_exchange has (RFC 8693).
func (r sourceReader) exchange() {
	s := r.s
	s.SubjectFile, s.SubjectEnv = r.path("subject_file"), r.name("subject_env")
	s.SubjectType, s.RequestedType = r.word("subject_type"), r.word("requested_type")
	if s.SubjectType == "" {
		s.SubjectType = tokenType
	}
	if s.RequestedType == "" {
		s.RequestedType = tokenType
	}
	if r.Node.Has("subject_file") && r.Node.Has("subject_env") {
		r.AtKey("subject_env", "binding.source", "The subject comes from subject_file or from subject_env, not from both.")
	}
	if s.ClientAuth != ClientNone && s.ClientID == "" {
		r.AtSelf("binding.source", "A client that says who it is needs the member \"client_id\".")
	}
}

// text is a member that is a string; a wrong one is binding.source.
func (r sourceReader) text(key string) (string, bool) {
	n := r.Node.Get(key)
	if n == nil {
		return "", false
	}
	if n.Kind != jsondoc.String {
		r.bad(key, "%s is a string.", jsondoc.Quote(key))
		return "", false
	}
	return n.Text, true
}

// word is a text without control characters that is not empty.
func (r sourceReader) word(key string) string {
	s, ok := r.text(key)
	if ok && (s == "" || len(s) > 512 || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f })) {
		r.bad(key, "%s is 1 to 512 bytes without control characters.", jsondoc.Quote(key))
	}
	return s
}

func (r sourceReader) oneOf(key string, options []string) string {
	s, ok := r.text(key)
	if !ok {
		return options[0]
	}
	if !slices.Contains(options, s) {
		r.bad(key, "%s is one of %s.", jsondoc.Quote(key), strings.Join(options, ", "))
	}
	return s
}

func (r sourceReader) address(key string) string {
	n := r.Node.Get(key)
	if n == nil {
		return ""
	}
	if n.Kind != jsondoc.String || !SafeURL(n.Text) {
		r.bad(key, "%s is an https address, or an http address of this machine.", jsondoc.Quote(key))
	}
	return n.Text
}

// list is a member that is an array of strings.
func (r sourceReader) list(key string) []string {
	n := r.Node.Get(key)
	if n == nil {
		return nil
	}
	var out []string
	ok := n.Kind == jsondoc.Array
	for _, item := range n.Items {
		ok = ok && item.Kind == jsondoc.String
		out = append(out, item.Text)
	}
	if !ok {
		r.bad(key, "%s is an array of strings.", jsondoc.Quote(key))
		return nil
	}
	return out
}

// scopes are scope tokens of RFC 6749, each once.
func (r sourceReader) scopes() []string {
	list := r.list("scopes")
	for i, s := range list {
		if s == "" || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) || slices.Contains(list[:i], s) {
			r.bad("scopes", "A scope is a word of printable ASCII, and stands once.")
			break
		}
	}
	return list
}

// argv is an exact command line: a program by name or absolute path, and its arguments.
func (r sourceReader) argv() []string {
	list := r.list("argv")
	switch {
	case !r.Node.Has("argv") || r.Node.Get("argv").Kind != jsondoc.Array:
	case len(list) == 0 || list[0] == "":
		r.bad("argv", "\"argv\" names a program.")
	case strings.Contains(list[0], "/") && !path.IsAbs(list[0]):
		r.bad("argv", "The program of a source is a bare name or an absolute path, none of the pack.")
	case slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "\x00") }):
		r.bad("argv", "An argument has no NUL.")
	}
	return list
}

// path is absolute, or below the home of who connects.
func (r sourceReader) path(key string) string {
	s := r.word(key)
	rel, home := strings.CutPrefix(s, "~/")
	if s != "" && (home && (rel == "" || path.Clean("/"+rel) != "/"+rel) || !home && (!path.IsAbs(s) || path.Clean(s) != s)) {
		r.bad(key, "%s is an absolute path, or one that begins with ~/, without \"..\".", jsondoc.Quote(key))
	}
	return s
}

func (r sourceReader) pointer() string {
	s := r.word("pointer")
	if _, ok := jsondoc.Tokens(s); !ok {
		r.bad("pointer", "\"pointer\" is a JSON pointer, as /token.")
	}
	return s
}

func (r sourceReader) name(key string) string {
	s, ok := r.text(key)
	if ok && !envName(s) {
		r.bad(key, "%s is the name of a variable.", jsondoc.Quote(key))
	}
	return s
}

// SafeURL takes https, and http on a loopback address.
func SafeURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return false
	}
	switch u.Scheme {
	case "https":
		return true
	case "http":
		ip, err := netip.ParseAddr(u.Hostname())
		return u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	default:
		return false
	}
}
