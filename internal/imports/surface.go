package imports

import (
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// maxFile is the most bytes of a required file of a pack (§2.1).
const maxFile = 1 << 20

// surface is the manifest. Where it would be too large otherwise, the arguments are left to the document (§3.6).
func (b *builder) surface() ([]byte, *protocol.Error) {
	binding, err := b.binding()
	if err != nil {
		return nil, err
	}
	info := b.root.Get("info")
	title := oneLine(text(info, "title"), 80)
	b.report.Version = packVersion(text(info, "version"))
	commands := &jsondoc.Node{Kind: jsondoc.Object}
	for _, op := range b.chosen {
		commands.Members = append(commands.Members, member(op.key, b.verb(op)))
	}
	root := object(
		member("hcp", object(member("version", jsondoc.Str("1.1")))),
		member("id", jsondoc.Str(b.id)),
		member("version", jsondoc.Str(b.report.Version)),
		member("name", word(title)),
		member("summary", jsondoc.Str(b.summary(200))),
		member("adapter", jsondoc.Str(manifest.OpenAPI)),
		member("openapi", object(member("document", jsondoc.Str("openapi.json")), member("server", jsondoc.Str(b.server.String())))),
		member("binding", binding),
		member("verbs", commands),
	)
	if laid := lay(root); len(laid) <= maxFile {
		return laid, nil
	}
	return append(root.Append(nil), '\n'), nil
}

// summary is what the API is, on one line.
func (b *builder) summary(limit int) string {
	info := b.root.Get("info")
	for _, s := range []string{text(info, "summary"), firstSentence(text(info, "description")), text(info, "title")} {
		if s = oneLine(s, limit); len(s) > 2 {
			return s
		}
	}
	return oneLine("Commands of "+b.server.origin+".", limit)
}

// verb is one command.
func (b *builder) verb(op *operation) *jsondoc.Node {
	out := object(member("summary", jsondoc.Str(b.says(op, 200))), member("operation_id", jsondoc.Str(op.id)))
	if b.derived {
		return out
	}
	if op.command.example == nil {
		op.command.example = b.example(op)
	}
	out.Members = append(out.Members, member("args", op.command.args))
	if e := op.command.example; e.Kind == jsondoc.Object {
		out.Members = append(out.Members, member("examples", jsondoc.Arr(object(member("args", e)))))
	}
	return out
}

// says is what an operation does, on one line.
func (b *builder) says(op *operation, limit int) string {
	for _, s := range []string{text(op.node, "summary"), firstSentence(text(op.node, "description"))} {
		if s = oneLine(s, limit); len(s) > 2 {
			return s
		}
	}
	return oneLine(op.name(), limit)
}

// packVersion is a SemVer version of what the document calls its own: the first three numbers of it. One that does not
// begin with a number is none.
func packVersion(said string) string {
	var numbers []string
	said = strings.TrimLeft(said, "vV ")
	if said == "" || said[0] < '0' || said[0] > '9' {
		return "0.1.0"
	}
	for part := range strings.FieldsFuncSeq(said, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.ParseUint(part, 10, 31); err == nil && len(numbers) < 3 {
			numbers = append(numbers, strconv.FormatUint(n, 10))
		}
	}
	for len(numbers) < 3 {
		numbers = append(numbers, "0")
	}
	return strings.Join(numbers, ".")
}

// policy is who may do what: what looks is a read, everything else a write that is confirmed (§4).
func (b *builder) policy() []byte {
	entries := &jsondoc.Node{Kind: jsondoc.Object}
	for _, op := range b.chosen {
		land := member("privacy", object(member("land", jsondoc.Str(string(b.land(op))))))
		entry := object(member("operation", jsondoc.Str(string(protocol.Read))), land)
		if !op.read() {
			entry = object(member("operation", jsondoc.Str(string(protocol.Write))), land, member("confirm", b.question(op)))
		}
		entries.Members = append(entries.Members, member(op.key, entry))
	}
	root := object(member("surface_id", jsondoc.Str(b.id)), member("verbs", entries))
	if laid := lay(root); len(laid) <= maxFile {
		return laid
	}
	return append(root.Append(nil), '\n')
}

// land is where the files of a command lie: of one that sends files in the workspace, since nothing puts any into its own
// land; else it has none.
func (b *builder) land(op *operation) protocol.Land {
	if b.sendsFiles(op) {
		return protocol.Local
	}
	return protocol.Personal
}

// question is what a person is asked before a write (§4.5): what it does, and the request with its arguments.
func (b *builder) question(op *operation) *jsondoc.Node {
	braces := strings.NewReplacer("{", "{{", "}", "}}")
	said := strings.TrimRight(braces.Replace(b.says(op, 200)), ".!?")
	path := braces.Replace(oneLine(op.path, 250))
	for _, p := range op.params {
		if !b.derived && p.in == "path" && !strings.ContainsAny(p.name, "{}") {
			path = strings.ReplaceAll(path, "{{"+p.name+"}}", "{"+p.arg+"}")
		}
	}
	message := said + "? (" + strings.ToUpper(op.method) + " " + path + ")"
	if len([]rune(message)) > 500 {
		return jsondoc.Boolean(true)
	}
	return object(member("message", jsondoc.Str(message)))
}

// The words of a name that tell what an operation does, whatever its method is.
var (
	readWords  = [...]string{"search", "query", "list", "find", "lookup", "get", "count", "validate", "preview", "describe", "export"}
	writeWords = [...]string{"create", "delete", "remove", "update", "add", "set", "send", "reset", "cancel", "revoke", "logout", "logoff", "run", "start", "stop", "execute", "trigger", "approve", "enable", "disable", "purge", "refresh"}
)

// decide says what a person must still decide.
func (b *builder) decide() []string {
	out := b.credentialTold()
	out = append(out, "Server: requests go to "+b.server.String()+" and nowhere else.")
	var reads, writes []string
	for _, op := range b.chosen {
		words := strings.Split(op.key[strings.LastIndexByte(op.key, '.')+1:], "-")
		first, last := words[0], words[len(words)-1]
		looks := slices.Contains(readWords[:], first)
		switch {
		case op.read() && !looks && (slices.Contains(writeWords[:], first) || slices.Contains(writeWords[:], last)):
			writes = append(writes, op.key)
		case !op.read() && (looks || slices.Contains(readWords[:], last)) && !slices.Contains(writeWords[:], first) && !slices.Contains(writeWords[:], last):
			reads = append(reads, op.key)
		}
	}
	if len(writes) > 0 {
		out = append(out, "Reads by their method that may change something by their name; make them writes in the policy if they do: "+listed(writes)+".")
	}
	if len(reads) > 0 {
		out = append(out, "Writes by their method that may only look by their name; they may become reads in the policy: "+listed(reads)+".")
	}
	if sends := b.senders(); len(sends) > 0 {
		out = append(out, "Files: these send files of the workspace (land local), whichever the caller names: "+listed(sends)+".")
	}
	if len(b.left) > 0 {
		out = append(out, "Left out: "+strconv.Itoa(len(b.left))+" operations or parameters; the import named them.")
	}
	return out
}
