package protocol

// Code names why an exec or an operation outside exec was refused or failed. The table below is the
// only place that knows a code's step, class, section and HTTP status; docs/errors.md is made from it.
type Code string

// Class tells refused, failed and broken apart; the exit code follows from it (§6.10).
type Class string

// The classes and their exit codes.
const (
	Usage    Class = "usage"    // 64: the request itself is wrong
	Refused  Class = "refused"  // 3: a rule said no; nothing ran
	Failed   Class = "failed"   // 1: it ran and failed, or any failure not named elsewhere
	Internal Class = "internal" // 70: this runtime is broken or incomplete
)

// Codes of exec, in the order of the steps of §6.3.
const (
	InvalidEnvelope       Code = "invalid_envelope"
	PackNotInstalled      Code = "pack_not_installed"
	PackTampered          Code = "pack_tampered"
	PackNotActivated      Code = "pack_not_activated"
	UnknownCommand        Code = "unknown_command"
	NotExecutable         Code = "not_executable"
	CompositeEscalation   Code = "composite_escalation"
	Unauthenticated       Code = "unauthenticated"
	TenantUnresolved      Code = "tenant_unresolved"
	GrantMissing          Code = "grant_missing"
	ProjectRequired       Code = "project_required"
	ProjectDenied         Code = "project_denied"
	WorkspaceRequired     Code = "workspace_required"
	InvalidArgs           Code = "invalid_args"
	IdempotencyConflict   Code = "idempotency_conflict"
	IdempotencyInProgress Code = "idempotency_in_progress"
	IdempotencyUnknown    Code = "idempotency_unknown"
	ConfirmRequired       Code = "confirm_required"
	NotConnected          Code = "not_connected"
	BindingFailed         Code = "binding_failed"
	BinNotAllowed         Code = "bin_not_allowed"
	JailEscape            Code = "jail_escape"
	SandboxUnavailable    Code = "sandbox_unavailable"
	CommandFailed         Code = "command_failed"
	Timeout               Code = "timeout"
	Canceled              Code = "canceled"
	OutputTooLarge        Code = "output_too_large"
	UpstreamError         Code = "upstream_error"
	StepFailed            Code = "step_failed"
	InvalidResult         Code = "invalid_result"
	ProtectedPathChanged  Code = "protected_path_changed"
	InternalError         Code = "internal"
)

// Codes outside exec (§6.10).
const (
	LintFailed         Code = "lint_failed"
	OperatorRequired   Code = "operator_required"
	BootstrapPack      Code = "bootstrap_pack"
	DigestConflict     Code = "digest_conflict"
	PolicyLoosened     Code = "policy_loosened"
	StateDamaged       Code = "state_damaged"
	HostFileUnparsable Code = "host_file_unparsable"
	NotFound           Code = "not_found"
	UsageError         Code = "usage"
	ComponentMissing   Code = "component_missing"
	AuditBroken        Code = "audit_broken"
	ImportFailed       Code = "import_failed"
)

// CodeInfo is one row of the error table.
type CodeInfo struct {
	Code    Code
	Steps   []int // the steps of §6.3 that may answer it; empty outside exec
	Class   Class
	Section string
	HTTP    int // status where the answer is an envelope (§6.11)
	Meaning string
}

// Codes is the error table, in the order of the steps.
var Codes = []CodeInfo{
	{InvalidEnvelope, []int{1, 5}, Usage, "§6.1", 400, "The envelope is not one closed JSON object of the known members."},
	{PackNotInstalled, []int{2}, Refused, "§6.3", 200, "The store has no pack of that id."},
	{PackTampered, []int{2}, Refused, "§2.4", 200, "The installed files no longer match the digest recorded at install."},
	{PackNotActivated, []int{2}, Refused, "§11.1", 200, "The pack is installed, but not activated in this session."},
	{UnknownCommand, []int{3}, Refused, "§6.3", 200, "The pack declares no such command; details.nearest names similar ones."},
	{NotExecutable, []int{3}, Refused, "§6.3", 200, "The command is declared, but this runtime, platform or installation cannot run it."},
	{CompositeEscalation, []int{3}, Refused, "§3.5", 200, "A read composite has a write step."},
	{Unauthenticated, []int{4}, Refused, "§9.5", 200, "There is no valid Principal."},
	{TenantUnresolved, []int{4}, Refused, "§9.5", 200, "The session resolves to no tenant."},
	{GrantMissing, []int{4, 5}, Refused, "§9.5", 200, "No grant allows it, or one denies it; details name capability, principal and reason."},
	{ProjectRequired, []int{4}, Refused, "§9.2", 200, "Land brain needs a project, and none was given."},
	{ProjectDenied, []int{4}, Refused, "§9.5", 200, "The capability is granted, but not for this project."},
	{WorkspaceRequired, []int{4}, Refused, "§9.2", 200, "Land local needs a workspace, and none could be taken."},
	{InvalidArgs, []int{5}, Usage, "§6.3", 200, "The arguments miss their schema, or one would be read as an option."},
	{IdempotencyConflict, []int{5}, Refused, "§15.5", 200, "The idempotency key belongs to another request."},
	{IdempotencyInProgress, []int{5}, Refused, "§15.5", 200, "The run of this idempotency key has not ended."},
	{IdempotencyUnknown, []int{5}, Refused, "§15.5", 200, "The run of this idempotency key was cut off; what it did is not known, and it is not run again."},
	{ConfirmRequired, []int{6}, Refused, "§4.5", 200, "A gated write without a confirmation that counts; for an agent, details.approval_id is what a person can approve."},
	{NotConnected, []int{7}, Refused, "§8.5", 200, "The pack needs a credential and is not connected, or its source is another one than was consented to."},
	{BindingFailed, []int{7, 9}, Refused, "§8.4", 200, "The credential could not be minted, details.reason says why, or has not the form that its place in a request needs; no other was tried."},
	{BinNotAllowed, []int{8}, Refused, "§10.2", 200, "A program is not on the allow-list, or is no longer the one that was allowed."},
	{JailEscape, []int{8}, Refused, "§10.2", 200, "The working directory or a declared path lies outside what the command may have."},
	{SandboxUnavailable, []int{8}, Refused, "§10.5", 200, "A rule of the sandbox cannot be enforced here; details name rule and setting."},
	{CommandFailed, []int{9}, Failed, "§6.5", 200, "The program ended with an exit code that does not mean success, or by a signal."},
	{Timeout, []int{9}, Failed, "§6.9", 200, "The time limit passed; everything it started was killed."},
	{Canceled, []int{9}, Failed, "§6.9", 200, "The run was cancelled; everything it started was killed."},
	{OutputTooLarge, []int{9}, Failed, "§6.5", 200, "The output passed its cap; everything it started was killed."},
	{UpstreamError, []int{9}, Failed, "§3.6", 200, "The server answered with an error status, details.status; or gave no answer, and details.reason says why."},
	{StepFailed, []int{9}, Failed, "§3.5", 200, "A step of a composite failed; details name it and what was completed."},
	{InvalidResult, []int{10}, Failed, "§6.5", 200, "The output is not what the command declares."},
	{ProtectedPathChanged, []int{8, 10}, Failed, "§10.2", 200, "The command changed what the host may run later; what was there before was put back. At step 8 an earlier run that was cut off did, and nothing ran."},
	{InternalError, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, Internal, "§6.3", 500, "An unexpected fault of the runtime, never a success."},

	{LintFailed, nil, Failed, "§14.2", 200, "The pack has lint errors; details.issues lists all of them."},
	{OperatorRequired, nil, Refused, "§9.6", 200, "Only a human Principal may change grants, the allow-list and settings; or the settings forbid it, and details.setting names which."},
	{BootstrapPack, nil, Failed, "§11.1", 200, "The bootstrap pack cannot be uninstalled."},
	{DigestConflict, nil, Failed, "§11", 200, "The same version is installed with other content."},
	{PolicyLoosened, nil, Failed, "§13.3", 200, "The version may do more than the installed one, and nobody accepted that; details.changes lists all."},
	{StateDamaged, nil, Failed, "§11.3", 200, "state.json cannot be read; it was left as it is."},
	{HostFileUnparsable, nil, Failed, "§12.3", 200, "A host's file cannot be parsed; it was left as it is (not raised yet: hosts are not adopted)."},
	{NotFound, nil, Failed, "§11", 200, "There is nothing of that name."},
	{UsageError, nil, Usage, "§6.10", 400, "The command line is wrong."},
	{ComponentMissing, nil, Internal, "§11", 500, "A program that belongs beside this one is missing."},
	{AuditBroken, nil, Failed, "§15.4", 200, "The audit chain does not verify."},
	{ImportFailed, nil, Failed, "§15.6", 200, "The document cannot become a pack, or the pack not be written; details.reason says why, and nothing was written."},
}

// Info is the row of a code. An unknown code is treated as internal, so that a forgotten row fails closed.
func (c Code) Info() CodeInfo {
	for _, row := range Codes {
		if row.Code == c {
			return row
		}
	}
	return CodeInfo{Code: c, Class: Internal, Section: "§6.3", HTTP: 500, Meaning: "A code without a row."}
}

// Exit is the exit code of the CLI for the code (§6.10).
func (c Code) Exit() int {
	switch c.Info().Class {
	case Usage:
		return 64
	case Refused:
		return 3
	case Failed:
		return 1
	default:
		return 70
	}
}
