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
	return g.resolve(st, session, l, key, 1)
}

func (g *Gate) resolve(st *store.State, session string, l *Loaded, key string, depth int) (*Verb, *protocol.Error) {
	v, err := g.declared(l, key)
	if err != nil {
		return nil, err
	}
	if depth > maxNesting {
		return nil, notExecutable("nesting", fmt.Sprintf("Composite %s/%s nests more than %d deep.", l.ID, key, maxNesting))
	}
	for _, step := range v.Adapter.Steps() {
		if err := g.step(st, session, v, step, depth); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// step resolves one call of a composite, and refuses a write below a read.
func (g *Gate) step(st *store.State, session string, v *Verb, step adapter.Step, depth int) *protocol.Error {
	inner, err := g.Pack(st, session, step.Pack)
	at, sub := 2, (*Verb)(nil)
	if err == nil {
		at = 3
		sub, err = g.resolve(st, session, inner, step.Verb, depth+1)
	}
	if err != nil {
		if err.Step == 0 {
			err.Step = at
		}
		if err.Code == protocol.CompositeEscalation {
			return err
		}
		return notExecutable("step", fmt.Sprintf("Step %q of %s/%s cannot run: %s", step.ID, v.ID, v.Command.Key, err.Message)).
			With("step_id", step.ID).With("error", err).WithHint(err.Hint)
	}
	if v.Entry.Operation == protocol.Read && sub.Entry.Operation == protocol.Write {
		return protocol.Fail(protocol.CompositeEscalation, fmt.Sprintf("%s/%s is a read, but its step %q calls the write %s/%s.",
			v.ID, v.Command.Key, step.ID, step.Pack, step.Verb)).With("step_id", step.ID)
	}
	if sub.Entry.Confirm && !v.Entry.Confirm {
		return notExecutable("confirm", fmt.Sprintf("Step %q of %s/%s calls %s/%s, which needs a confirmation that the composite does not ask for.",
			step.ID, v.ID, v.Command.Key, step.Pack, step.Verb)).With("step_id", step.ID)
	}
	return nil
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
