package binding

import (
	"context"
	"errors"
	"strings"

	"hcpx/internal/protocol"
)

// Reason is the class of a failed mint (§8.4), in details.reason.
type Reason string

// The reasons.
const (
	Denied    Reason = "denied"    // the server, or a rule here, said no
	Revoked   Reason = "revoked"   // what was kept is not taken any more
	Timeout   Reason = "timeout"   // no answer in time
	Server    Reason = "server"    // not reached, or it failed
	Malformed Reason = "malformed" // it gave what is no credential
	Clock     Reason = "clock"     // this clock and the server's are too far apart
	Missing   Reason = "missing"   // the source is not there
	Unkept    Reason = "unkept"    // what must be kept could not be
	Canceled  Reason = "canceled"  // the caller gave up
)

// failed is a mint that did not succeed. No message holds a byte of what was sent or answered, but known words of it.
func failed(reason Reason, message string) *protocol.Error {
	return protocol.Fail(protocol.BindingFailed, message).With("reason", string(reason))
}

// failedLocal is failed for a source of this machine.
func failedLocal(why string) *protocol.Error { return failed(Missing, why) }

// reasonOf reads the reason of an error.
func reasonOf(err *protocol.Error) Reason {
	if err == nil {
		return ""
	}
	reason, _ := err.Details["reason"].(string)
	return Reason(reason)
}

// waited tells apart why a context ended.
func waited(ctx context.Context, what string) *protocol.Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failed(Timeout, strings.ToUpper(what[:1])+what[1:]+" gave no answer in time.")
	}
	return failed(Canceled, "The mint was cancelled before "+what+" had answered.")
}
