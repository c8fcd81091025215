// Package lifecycle is §11: the stages of a pack (lint, install, activate, connect, deactivate,
// uninstall), availability, and the operator's acts around them (allow, grant, revoke, repair). A file
// holds each stage.
//
// Nouns: Lifecycle (the operations over one store), View (what an operation answers: what stands now, and
// whether that is a change), Consent (what a person is shown before something is let in), Finding (one
// line of doctor and status, with its fix).
//
// Every operation checks its capability first, changes nothing when it refuses, is idempotent, and leaves
// one entry in the audit when it changed something or was refused by a grant. It prints nothing and never
// asks by itself: a face that may ask hands in an Ask, any other hands in nil. What a command may do is
// asked of gate, never decided here a second time.
package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/audit"
	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/manifest"
	"hcpx/internal/pack"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// Lifecycle operates on one store. It holds no state of its own and may be used by several at once.
type Lifecycle struct {
	Store store.Store
	Audit audit.Log
	Gate  *gate.Gate
	Now   func() time.Time
	NewID func() string // of an audit entry; unique and sortable
	// Shipped holds the packs that come with the program, a directory per pack id; nil when none.
	Shipped fs.FS
	// Path is the operator's PATH, in which the allow-list finds names at the moment of allowing (§10.2).
	Path string
	// Versions is a pattern of directories out of PATH in which a system keeps the versions of programs, "" for none:
	// only hints look there.
	Versions string
	// Scratch makes a sandbox like Gate's whose private directories lie in dir; nil means Gate's own.
	Scratch func(dir string) sandbox.Sandbox
	// Sources are patterns of where packs may come from (§9.3); nil means anywhere.
	Sources []string
	// Limits of a pack's files (§2.1); zero means the defaults.
	Limits pack.Limits
	// Run runs a preview, through the whole pipeline (§15.3); nil: none is shown, and nothing with one is approved.
	Run func(ctx context.Context, s protocol.Session, envelope []byte) protocol.Result
	// Machine judges the expressions of composites, for lint (§3.5); nil: a pack that has some cannot be linted.
	Machine composite.Machine
	// AuditHealth answers what is wrong with the audit, for doctor and status; it writes nothing.
	AuditHealth func() error
	// Keeper is where secrets are kept, for doctor (§8.3); nil where none is.
	Keeper Keeper
	// AgentEnvelope: an agent's own confirmation counts (§6.7); the setting that pipeline has too.
	AgentEnvelope bool
	// NoSelfConfirm: no grant lets it count either (§15.2).
	NoSelfConfirm bool
	// Settings is what is wrong in the settings, for doctor and status; nil when they hold.
	Settings *protocol.Error
}

// Keeper says where a secret would be kept now, and why one that is kept could not be had; neither changes anything.
type Keeper interface {
	Kind(ctx context.Context) string
	Check(ctx context.Context) *protocol.Error
}

// reading is the Lifecycle of an operation that must write nothing (§12.1.9): it finishes no change that a
// crash cut off, and sees it as if it were.
func (l *Lifecycle) reading() *Lifecycle {
	r, store := *l, l.Store.Reader()
	r.Store, r.Gate = store, l.Gate.Over(store)
	return &r
}

// state reads the state, or says how to mend it.
func (l *Lifecycle) state() (*store.State, *protocol.Error) {
	st, err := l.Store.State()
	if err != nil {
		return nil, storeFault(err, "The state cannot be read")
	}
	return l.Gate.InForce(st), nil
}

// storeFault turns a store's error into one that a person can act on.
func storeFault(err error, what string) *protocol.Error {
	var refusal *protocol.Error
	var damaged *store.DamagedError
	var unsafe *store.UnsafeError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &damaged):
		return protocol.Fail(protocol.StateDamaged, fmt.Sprintf("%s, line %d, column %d: %s; it was left as it is.",
			damaged.Path, damaged.Line, damaged.Column, damaged.Reason)).
			With("path", damaged.Path).With("line", damaged.Line).With("column", damaged.Column).WithHint("hcpx repair")
	case errors.As(err, &unsafe):
		return protocol.Fail(protocol.InternalError, sentenceEnd(unsafe.Error())+".").WithHint("hcpx doctor")
	case errors.Is(err, store.ErrOther):
		return protocol.Fail(protocol.NotFound, "Nothing was done: another process changed the pack in between.").WithHint("hcpx list")
	case errors.Is(err, store.ErrNotInstalled):
		return protocol.Fail(protocol.PackNotInstalled, "The pack is not installed.").WithHint("hcpx list")
	}
	return protocol.Fail(protocol.InternalError, fmt.Sprintf("%s: %s.", what, sentenceEnd(err.Error()))).WithHint("hcpx doctor")
}

// sentenceEnd takes the full stop off a reason that becomes the end of a sentence.
func sentenceEnd(reason string) string { return strings.TrimRight(reason, ". \n") }

// subject is what a capability is asked for outside exec.
type subject struct{ act, pack, plane string }

// may checks a capability before anything else happens (§11.1, §9.6); a refusal is in the audit.
func (l *Lifecycle) may(s protocol.Session, st *store.State, c protocol.Capability, on subject) *protocol.Error {
	d := l.weighed(s, st, c, on)
	if d.Err == nil {
		return nil
	}
	return l.refuse(s, audit.Entry{Act: on.act, Pack: on.pack, Grant: d.Path}, d.Err)
}

// weighed is what the grants say, which nobody is told of here.
func (l *Lifecycle) weighed(s protocol.Session, st *store.State, c protocol.Capability, on subject) grant.Decision {
	return grant.Evaluate(st.Grants, grant.Request{
		Principal: s.Principal, Tenant: s.Tenant, Capability: c, Pack: on.pack, Plane: on.plane, Now: l.Now(),
	})
}

// operator admits a person only: grants, the allow-list and settings are the operator's (§9.6).
func (l *Lifecycle) operator(s protocol.Session, act string) *protocol.Error {
	if s.Principal.Human() {
		return nil
	}
	e := protocol.Fail(protocol.OperatorRequired, fmt.Sprintf("%s is an act of a person, and the caller is %s.", act, s.Principal)).
		With("principal", string(s.Principal)).WithHint("hcpx whoami")
	return l.refuse(s, audit.Entry{Act: act}, e)
}

// Refuse records that a caller without a valid Principal was turned away (§9.7), and answers it.
func (l *Lifecycle) Refuse(s protocol.Session, why *protocol.Error) *protocol.Error {
	return l.refuse(s, audit.Entry{}, why)
}

// refuse records a denial (§9.7). One that can't be recorded says so instead, and is still no success.
func (l *Lifecycle) refuse(s protocol.Session, e audit.Entry, why *protocol.Error) *protocol.Error {
	e.Kind, e.Code, e.Message = audit.Denial, string(why.Code), why.Message
	if err := l.append(s, e, false); err != nil {
		return unrecorded("This was refused, and the refusal", err).With("code", string(why.Code))
	}
	return why
}

// unrecorded is the error of an act whose entry can't be written; what says what became of the act.
func unrecorded(what string, err error) *protocol.Error {
	return protocol.Fail(protocol.InternalError, fmt.Sprintf("%s cannot be recorded: %s.", what, sentenceEnd(err.Error()))).WithHint("hcpx doctor")
}

// changes writes the one entry of a state-changing command (§15.4), on disk before the change: what
// can't be recorded isn't done.
func (l *Lifecycle) changes(s protocol.Session, act, packID string, detail any) *protocol.Error {
	if err := l.enter(s, act, packID, detail); err != nil {
		return unrecorded("Nothing was done, because it", err)
	}
	return nil
}

// enter writes the entry of a change. Its caller knows what was done and what was not.
func (l *Lifecycle) enter(s protocol.Session, act, packID string, detail any) error {
	raw, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	return l.append(s, audit.Entry{Kind: audit.Change, Act: act, Pack: packID, Detail: raw}, true)
}

// failed adds that a recorded change did not come about. The first fault is the answer, whether or not
// the audit takes it.
func (l *Lifecycle) failed(s protocol.Session, act, packID string, why *protocol.Error) *protocol.Error {
	_ = l.append(s, audit.Entry{Kind: audit.Change, Act: act, Pack: packID, Code: string(why.Code), Message: why.Message}, true)
	return why
}

func (l *Lifecycle) append(s protocol.Session, e audit.Entry, durable bool) error {
	e.ID = l.NewID()
	e.Principal, e.Tenant, e.Session, e.Project = string(s.Principal), s.Tenant, s.ID, s.Project
	return l.Audit.Append(e, durable)
}

// errUnchanged ends an Update that has nothing to change.
var errUnchanged = errors.New("unchanged")

// update changes the state under its lock. fn answers what changed, for the audit, or nil for nothing;
// the entry is written before the state is replaced, so that no change goes unrecorded.
func (l *Lifecycle) update(s protocol.Session, act, packID string, fn func(*store.State) (any, *protocol.Error)) (bool, *protocol.Error) {
	recorded := false
	err := l.Store.Update(func(st *store.State) error {
		detail, refusal := fn(st)
		if refusal != nil {
			return refusal
		}
		if detail == nil {
			return errUnchanged
		}
		if refusal := l.changes(s, act, packID, detail); refusal != nil {
			return refusal
		}
		recorded = true
		return nil
	})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errUnchanged):
		return false, nil
	}
	fault := storeFault(err, "The state cannot be changed")
	if recorded {
		return false, l.failed(s, act, packID, fault)
	}
	return false, fault
}

// plane is the plane of an installed pack, runtime when it is not known: a pack that can't be read is
// covered by ordinary grants, for its removal and nothing else.
func (l *Lifecycle) plane(id string) string {
	if loaded, err := l.Gate.Installed(id); err == nil {
		return planeOf(loaded.Manifest)
	}
	return grant.PlaneRuntime
}

func planeOf(m *manifest.Manifest) string {
	if m == nil || m.Plane == "" {
		return grant.PlaneRuntime
	}
	return m.Plane
}
