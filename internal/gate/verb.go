package gate

import (
	"fmt"
	"slices"
	"sync"

	"hcpx/internal/adapter"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// maxNesting bounds composites within composites (§3.5).
const maxNesting = 8

// compiled is a command compiled once per loaded pack.
type compiled struct {
	once sync.Once
	verb *Verb
	err  *protocol.Error
}

// Verb is step 3: the command is declared, this build has its adapter, nothing that must be understood is
// unknown (§2.6), and every step of a composite resolves (§3.5).
func (g *Gate) Verb(st *store.State, session string, l *Loaded, key string) (*Verb, *protocol.Error) {
	r := (&resolving{g, st, session, map[string]*resolved{}}).command(l, key)
	return r.verb, r.err
}

// resolving is one walk over a command and what it calls. Each command is looked at once, however many steps lead to
// it: eight composites of 64 steps each would have more ways than anybody can walk.
type resolving struct {
	*Gate
	st      *store.State
	session string
	seen    map[string]*resolved // by pack/verb
}

// resolved is what became of a command. height counts the commands on the longest way down from it, 0 while they are
// still looked at.
type resolved struct {
	verb   *Verb
	err    *protocol.Error
	height int
}

func (w *resolving) command(l *Loaded, key string) *resolved {
	id := l.ID + "/" + key
	if r := w.seen[id]; r != nil {
		if r.height == 0 && r.err == nil {
			return &resolved{err: notExecutable("cycle", fmt.Sprintf("Composite %s leads back to itself.", id))}
		}
		return r
	}
	r := &resolved{}
	w.seen[id] = r
	v, err := w.declared(l, key)
	deepest := 0
	for i := 0; err == nil && i < len(v.Adapter.Steps()); i++ {
		var sub *resolved
		if sub, err = w.step(v, v.Adapter.Steps()[i]); err == nil {
			deepest = max(deepest, sub.height)
		}
	}
	if err == nil && deepest >= maxNesting {
		err = notExecutable("nesting", fmt.Sprintf("Composite %s nests more than %d deep.", id, maxNesting))
	}
	if err != nil {
		v = nil
	}
	*r = resolved{v, err, deepest + 1}
	return r
}

// step resolves one call of a composite, and refuses a write below a read.
func (w *resolving) step(v *Verb, step adapter.Step) (*resolved, *protocol.Error) {
	inner, err := w.Pack(w.st, w.session, step.Pack)
	at, sub := 2, (*resolved)(nil)
	if err == nil {
		at = 3
		if sub = w.command(inner, step.Verb); sub.err != nil {
			own := *sub.err // others may meet it too
			err = &own
		}
	}
	if err != nil {
		if err.Step == 0 {
			err.Step = at
		}
		if err.Code == protocol.CompositeEscalation {
			return nil, err
		}
		return nil, notExecutable("step", fmt.Sprintf("Step %q of %s/%s cannot run: %s", step.ID, v.ID, v.Command.Key, err.Message)).
			With("step_id", step.ID).With("error", err).WithHint(err.Hint)
	}
	if v.Entry.Operation == protocol.Read && sub.verb.Entry.Operation == protocol.Write {
		return nil, protocol.Fail(protocol.CompositeEscalation, fmt.Sprintf("%s/%s is a read, but its step %q calls the write %s/%s.",
			v.ID, v.Command.Key, step.ID, step.Pack, step.Verb)).With("step_id", step.ID)
	}
	if sub.verb.Entry.Confirm && !v.Entry.Confirm {
		return nil, notExecutable("confirm", fmt.Sprintf("Step %q of %s/%s calls %s/%s, which needs a confirmation that the composite does not ask for.",
			step.ID, v.ID, v.Command.Key, step.Pack, step.Verb)).With("step_id", step.ID)
	}
	return sub, nil
}

// declared finds and compiles a command of the pack, once. What is not declared is not kept, or callers who guess
// would fill the memory.
func (g *Gate) declared(l *Loaded, key string) (*Verb, *protocol.Error) {
	if l.Manifest.Command(key) == nil {
		return g.compile(l, key)
	}
	l.mu.Lock()
	c := l.verbs[key]
	if c == nil {
		c = &compiled{}
		l.verbs[key] = c
	}
	l.mu.Unlock()
	c.once.Do(func() { c.verb, c.err = g.compile(l, key) })
	if c.err != nil {
		refusal := *c.err // callers set step and details
		return nil, &refusal
	}
	return c.verb, nil
}

func (g *Gate) compile(l *Loaded, key string) (*Verb, *protocol.Error) {
	cmd := l.Manifest.Command(key)
	if cmd == nil {
		e := protocol.Fail(protocol.UnknownCommand, fmt.Sprintf("Pack %q has no command %q.", l.ID, key)).
			WithHint("hcpx availability " + l.ID)
		if near := l.Manifest.Nearest(key); len(near) > 0 {
			e = e.With("nearest", near)
		}
		return nil, e
	}
	entry := l.Policy.Verb(key)
	if entry == nil || entry.Operation == "" || entry.Land == "" {
		return nil, notExecutable("policy", fmt.Sprintf("%s/%s has no complete policy entry.", l.ID, key))
	}
	if unmet := slices.Concat(l.Manifest.Unmet, l.Policy.Unmet, cmd.Unmet, entry.Unmet); len(unmet) > 0 {
		return nil, notExecutable("must_understand", fmt.Sprintf("%s/%s needs %q, which this runtime does not know.", l.ID, key, unmet[0]))
	}
	if name := steering(l.Manifest.Wrap); name != "" {
		return nil, notExecutable("lint", fmt.Sprintf("%s/%s cannot run: its pack sets %q, which no pack may set.", l.ID, key, name)).WithHint("hcpx lint " + protocol.Words(l.Dir))
	}
	kind := g.Adapters[l.Manifest.Adapter]
	if kind == nil {
		return nil, notExecutable("adapter", fmt.Sprintf("This runtime has no adapter %q.", l.Manifest.Adapter))
	}
	command, issues := kind.Compile(l.Manifest, cmd)
	if command == nil {
		reason := "it does not compile"
		if len(issues) > 0 {
			reason = issues[0].Message
		}
		return nil, notExecutable("lint", fmt.Sprintf("%s/%s cannot run: %s", l.ID, key, reason)).WithHint("hcpx lint " + protocol.Words(l.Dir))
	}
	if err := command.Supported(); err != nil {
		return nil, err
	}
	return &Verb{Loaded: l, Command: cmd, Entry: entry, Adapter: command}, nil
}

// steering is a variable that the block sets and may not (§10.2), "" when there is none. Lint says so before an
// install; a pack may have come in under an older list. Of the binding the decoder says it.
func steering(block *manifest.WrapBlock) string {
	if block == nil {
		return ""
	}
	for _, v := range block.Env {
		if manifest.UnsafeEnvName(v.Name) {
			return v.Name
		}
	}
	return ""
}

func notExecutable(reason, message string) *protocol.Error {
	return protocol.Fail(protocol.NotExecutable, message).With("reason", reason)
}
