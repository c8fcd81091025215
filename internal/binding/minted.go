package binding

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Minted is the credential of one run. It hides itself from printing, logging and encoding (§8.4): its
// value leaves by Env alone, into one child's environment, and by Part, into one request.
type Minted struct {
	// held is behind a pointer, so that printing a struct around a Minted shows an address at most.
	held   *credential
	kind   string
	reused bool
}

// credential is what was minted; all nil for a mode that mints nothing. hidden is what else was touched for it and
// must be masked: refresh tokens, client secrets, a name and password as one.
type credential struct {
	token, username, password []byte
	hidden                    [][]byte
}

// Kind is the kind of source that it came from; "" when nothing was minted.
func (m *Minted) Kind() string { return m.kind }

// Reused says that an earlier mint's token was handed out again (§8.4).
func (m *Minted) Reused() bool { return m.reused }

// Secrets are all values that must be masked wherever output is shown, the longest first.
func (m *Minted) Secrets() []string {
	if m == nil || m.held == nil {
		return nil
	}
	var secrets []string
	for _, part := range append([][]byte{m.held.token, m.held.password}, m.held.hidden...) {
		if s := string(part); s != "" && !slices.Contains(secrets, s) {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

func (m Minted) String() string { return protocol.Redacted }

// GoString answers %#v.
func (m Minted) GoString() string { return protocol.Redacted }

// Format answers every other verb.
func (m Minted) Format(w fmt.State, _ rune) {
	_, _ = io.WriteString(w, protocol.Redacted) // fmt has no way to take the error
}

// MarshalJSON answers encoders; so does MarshalText.
func (m Minted) MarshalJSON() ([]byte, error) { return []byte(`"` + protocol.Redacted + `"`), nil }

// MarshalText answers encoders of text.
func (m Minted) MarshalText() ([]byte, error) { return []byte(protocol.Redacted), nil }

// Release wipes the value. The Minted gives nothing afterwards; releasing twice is harmless.
func (m *Minted) Release() {
	if m == nil || m.held == nil {
		return
	}
	for _, part := range append([][]byte{m.held.token, m.held.username, m.held.password}, m.held.hidden...) {
		clear(part)
	}
	m.held = nil
}

// Part is one part of the credential, for the one request that it is placed in (§8.2, "auto"); false when it has none.
func (m *Minted) Part(name string) (string, bool) {
	if m == nil || m.held == nil {
		return "", false
	}
	value, err := m.held.part(name)
	return string(value), err == nil
}

// Env fills the manifest's inject.env (§8.2): each value is a template of {token}, {username} and
// {password}, with {{ and }} for braces. It answers NAME=value in order, and the secrets that must be
// masked wherever output is shown. A template that this credential can't fill is binding_failed: the
// command is not run with half of what it needs.
func (m *Minted) Env(inject []manifest.EnvVar) (env, secrets []string, failed *protocol.Error) {
	if len(inject) == 0 {
		return nil, m.Secrets(), nil
	}
	var have credential
	if m != nil && m.held != nil {
		have = *m.held
	}
	for _, v := range inject {
		value, err := have.fill(v.Value)
		if err != nil {
			return nil, nil, protocol.Fail(protocol.BindingFailed, "The injection of "+v.Name+" cannot be filled: "+err.Error()+".")
		}
		env = append(env, v.Name+"="+value)
	}
	return env, m.Secrets(), nil
}

// fill renders one template. Its errors name the placeholder, never a value.
func (c credential) fill(template string) (string, error) {
	var b strings.Builder
	for rest := template; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		if strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}") {
			b.WriteByte(rest[0])
			rest = rest[2:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if rest[0] == '}' || end < 0 {
			return "", fmt.Errorf("the template has a single brace")
		}
		value, err := c.part(rest[1:end])
		if err != nil {
			return "", err
		}
		b.Write(value)
		rest = rest[end+1:]
	}
	return b.String(), nil
}

func (c credential) part(name string) ([]byte, error) {
	var value []byte
	switch name {
	case "token":
		value = c.token
	case "username":
		value = c.username
	case "password":
		value = c.password
	default:
		return nil, fmt.Errorf("a credential has no {%s}", name)
	}
	switch {
	case len(value) == 0:
		return nil, fmt.Errorf("the credential has no %s", name)
	case slices.Contains(value, 0):
		return nil, fmt.Errorf("the %s has a byte that no environment can carry", name)
	}
	return value, nil
}
