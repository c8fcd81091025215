package protocol

import (
	"cmp"
	"slices"
)

// Severity of a finding of lint.
type Severity string

// An error fails lint; a warning never changes an exit code.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Issue is one finding of lint with its exact place (§14.2). Line and column are 1-based, the column in
// code points. Pointer is set for JSON files.
type Issue struct {
	Code     IssueCode `json:"code"`
	Severity Severity  `json:"severity"`
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Column   int       `json:"column"`
	Pointer  string    `json:"pointer"`
	Message  string    `json:"message"`
	Section  string    `json:"section"`
	Hint     string    `json:"hint,omitempty"`
	Dir      string    `json:"dir,omitempty"` // set when several directories are linted
}

// SortIssues orders by dir, file (bytes), line, column, code.
func SortIssues(issues []Issue) {
	slices.SortStableFunc(issues, func(a, b Issue) int {
		return cmp.Or(cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code))
	})
}

// HasErrors says whether lint fails.
func HasErrors(issues []Issue) bool {
	return slices.ContainsFunc(issues, func(i Issue) bool { return i.Severity == SeverityError })
}

// IssueCode names a finding of lint. IssueCodes is the only place that knows its severity and section.
type IssueCode string

// IssueInfo is one row of the lint catalogue.
type IssueInfo struct {
	Code     IssueCode
	Severity Severity
	Section  string
	Meaning  string
}

// NewIssue makes an Issue with severity and section from the catalogue. A code without a row is an error.
func NewIssue(code IssueCode, file, message string) Issue {
	i := Issue{Code: code, Severity: SeverityError, File: file, Line: 1, Column: 1, Message: message}
	for _, row := range IssueCodes {
		if row.Code == code {
			i.Severity, i.Section = row.Severity, row.Section
		}
	}
	return i
}

// IssueCodes is the lint catalogue.
var IssueCodes = []IssueInfo{
	{"pack.unreadable", SeverityError, "§2.1", "The directory or one of its files cannot be read."},
	{"pack.missing-file", SeverityError, "§2.1", "One of the three required files is missing."},
	{"pack.symlink-escape", SeverityError, "§2.1", "A symbolic link leads outside the pack or is absolute."},
	{"pack.too-large", SeverityError, "§2.1", "A required file, the number of files or their sum passes its limit."},
	{"pack.irregular-file", SeverityError, "§2.1", "A device, socket, fifo, or a name with a control character."},
	{"pack.dir-name", SeverityWarning, "§2.2", "The directory is not named after the pack."},
	{"json.syntax", SeverityError, "§2.1", "The file is not one JSON value."},
	{"json.duplicate-key", SeverityError, "§2.1", "An object names a member twice."},
	{"json.encoding", SeverityError, "§2.1", "The file is not UTF-8 without BOM."},
	{"manifest.schema", SeverityError, "§3", "A member of the manifest is missing or has the wrong form."},
	{"manifest.id", SeverityError, "§2.2", "The id does not have the form of a pack_id."},
	{"manifest.reserved-id", SeverityError, "§2.2", "The id is reserved for the runtime."},
	{"manifest.version", SeverityError, "§13.2", "hcp.version is not 1.x."},
	{"manifest.adapter-block", SeverityError, "§3", "The block that the adapter needs is missing, or there is one too many."},
	{"manifest.args-schema", SeverityError, "§3.2", "args or result is not a JSON Schema that this runtime takes."},
	{"manifest.tool-name-collision", SeverityError, "§12.2", "Two commands have the same tool name."},
	{"manifest.tool-name-length", SeverityError, "§12.2", "A tool name is longer than 64 characters."},
	{"manifest.tool-name-long", SeverityWarning, "§12.2", "A tool name is longer than 53 characters; some hosts cut it."},
	{"manifest.flag-collision", SeverityError, "§12.1", "Two arguments make the same flag."},
	{"manifest.reserved-arg", SeverityError, "§12.2", "An argument's name starts with hcp_."},
	{"manifest.unknown-field", SeverityWarning, "§13.2", "A member that this runtime does not know is ignored."},
	{"wrap.bin", SeverityError, "§3.3", "The program is a path outside the pack, absent, or not executable."},
	{"wrap.uses", SeverityError, "§3.3", "A shipped script's interpreter is not named in uses."},
	{"wrap.reads", SeverityError, "§10.2", "reads would open a credential store, the store or an ancestor of one."},
	{"wrap.placeholder", SeverityError, "§3.3", "A placeholder names no argument, or an object or array without |json."},
	{"wrap.env-secret", SeverityError, "§3.3", "A static environment value looks like a secret."},
	{"wrap.env-name", SeverityError, "§10.2", "The environment name may not be set by a pack."},
	{"wrap.pass-through", SeverityWarning, "§3.3", "Legacy pass-through; non-conforming as a destination."},
	{"wrap.no-option-guard", SeverityWarning, "§3.3", "A free string stands before no -- and would be refused when it starts with a dash."},
	{"composite.unknown-step", SeverityError, "§3.5", "A step calls a command that is not declared."},
	{"composite.cycle", SeverityError, "§3.5", "Steps call each other in a circle."},
	{"composite.escalation", SeverityError, "§3.5", "A read composite has a write step."},
	{"composite.confirm", SeverityError, "§3.5", "A step needs confirm, and the composite does not declare it."},
	{"composite.expression", SeverityError, "§3.5", "A jq expression does not compile or uses a function that is not allowed."},
	{"openapi.document", SeverityError, "§3.6", "The document is missing, is not OpenAPI 3.0 or 3.1, or refers to what it does not hold."},
	{"openapi.operation", SeverityError, "§3.6", "The document has no such operation, or none that can be called with these arguments."},
	{"openapi.server", SeverityError, "§3.6", "The server is not an https or loopback address, or an operation has one of another origin."},
	{"openapi.security", SeverityError, "§3.6", "The operation's security needs what the binding cannot give."},
	{"policy.schema", SeverityError, "§4", "A member of the policy is missing or has the wrong form."},
	{"policy.id-mismatch", SeverityError, "§2.2", "surface_id differs from the manifest's id."},
	{"policy.missing-entry", SeverityError, "§4.4", "A command or trigger has no entry."},
	{"policy.orphan-entry", SeverityError, "§4.4", "An entry has no command or trigger."},
	{"policy.confirm-on-read", SeverityError, "§4.5", "confirm stands on a read or a trigger."},
	{"policy.protected", SeverityError, "§10.2", "protected means no name of the list of §10.2, or stands where no workspace is written."},
	{"policy.preview", SeverityError, "§15.3", "preview names no read command of the same pack that the arguments of the write are enough for."},
	{"binding.modes", SeverityError, "§8.1", "More than one binding mode is declared."},
	{"binding.hub", SeverityError, "§8.2", "The hub does not fit the mode or the source."},
	{"binding.source", SeverityError, "§8.3", "The source is missing, of a kind that its mode lacks, or has an unsafe URL."},
	{"sense.polling", SeverityError, "§7.1", "A trigger polls; that is not Sense."},
	{"sense.source", SeverityError, "§7.1", "A trigger's source is missing or has the wrong form."},
	{"skill.credential", SeverityError, "§5.2", "The skill holds a credential."},
	{"skill.host-path", SeverityError, "§5.2", "The skill names a path of one machine."},
	{"skill.undeclared-command", SeverityError, "§5.2", "The skill teaches a command that is not declared."},
	{"skill.maybe-command", SeverityWarning, "§5.2", "A bare key looks like a command of the pack that is not declared."},
	{"skill.untaught-command", SeverityWarning, "§5.2", "A command is not mentioned in the skill."},
	{"skill.lead", SeverityError, "§5.1", "There is no H1 with a lead of at most 300 characters below it."},
	{"faces.drift", SeverityError, "§12.4", "Manifest, policy, skill and evals name different commands."},
	{"command.no-example", SeverityWarning, "§3.2", "A command has no example."},
	{"setup.partial", SeverityWarning, "§12.1", "Only some of setup.status, setup.apply and setup.update are declared."},
}
