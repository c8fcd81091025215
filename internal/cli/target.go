package cli

import (
	"context"
	"encoding/json"
	"path/filepath"

	"hcpx/internal/app"
	"hcpx/internal/conformance"
	"hcpx/internal/grant"
	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// target makes the runtimes that the vectors of §14.3 drive: this program's own wiring over a store of
// their own, with doors that count.
type target struct{ env Env }

// New wires a runtime over a fresh home. Of the environment it gets PATH and nothing else.
func (t target) New(home string) (conformance.Runtime, error) {
	around := filepath.Dir(home)
	var watch app.Watch
	d := newDeps(t.env)
	a, refusal := app.Open(app.Options{
		Home: home, UserHome: filepath.Join(around, "user"), Managed: filepath.Join(around, "managed.toml"), Now: t.env.Now,
		Watch: &watch, Builtin: d.builtin, Ready: t.env.Ready, Machine: d.machine(),
		Getenv: func(name string) string {
			if name == "PATH" {
				return t.env.Getenv(name)
			}
			return ""
		},
	})
	if refusal != nil {
		return nil, refusal
	}
	d.opened = a
	first := protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local"}
	life, refusal := a.Lifecycle(first)
	if refusal != nil {
		return nil, refusal
	}
	x, refusal := a.Executor(first)
	if refusal != nil {
		return nil, refusal
	}
	return &judged{Executor: x, d: d, life: life, watch: &watch, done: d.close}, nil
}

// judged is one runtime under test.
type judged struct {
	protocol.Executor
	d     *deps
	life  *lifecycle.Lifecycle
	watch *app.Watch
	done  func()
}

func (j *judged) Lint(dirs []string) ([]protocol.Issue, *protocol.Error) {
	v, err := j.life.Lint(dirs)
	return v.Issues, err
}

func (j *judged) Install(s protocol.Session, dirs []string, allow bool) *protocol.Error {
	_, err := j.life.Install(s, dirs, lifecycle.InstallOptions{AllowBin: allow, AllowRead: allow})
	return err
}

func (j *judged) Activate(s protocol.Session, ids []string) *protocol.Error {
	_, err := j.life.Activate(s, ids)
	return err
}

func (j *judged) Connect(s protocol.Session, id string) *protocol.Error {
	_, err := j.life.Connect(context.Background(), s, id, lifecycle.ConnectOptions{})
	return err
}

func (j *judged) Deactivate(s protocol.Session, ids []string) *protocol.Error {
	_, err := j.life.Deactivate(context.Background(), s, ids)
	return err
}

func (j *judged) Disconnect(s protocol.Session, id string) *protocol.Error {
	_, err := j.life.Disconnect(context.Background(), s, id)
	return err
}

func (j *judged) Uninstall(s protocol.Session, id string) *protocol.Error {
	_, err := j.life.Uninstall(context.Background(), s, id, lifecycle.UninstallOptions{})
	return err
}

func (j *judged) Allow(s protocol.Session, programs []string) *protocol.Error {
	_, err := j.life.Allow(s, lifecycle.AllowRequest{Bins: programs})
	return err
}

func (j *judged) Grant(s protocol.Session, form []byte) *protocol.Error {
	var g grant.Grant
	if err := json.Unmarshal(form, &g); err != nil {
		return protocol.Fail(protocol.UsageError, "The grant is not in the form of §9.6: "+protocol.Clause(err.Error())+".")
	}
	_, err := j.life.Grant(s, g)
	return err
}

func (j *judged) Approve(s protocol.Session, id string) *protocol.Error {
	_, err := j.life.Approve(context.Background(), s, id, lifecycle.ApproveOptions{})
	return err
}

func (j *judged) Reject(s protocol.Session, id string) *protocol.Error {
	_, err := j.life.Reject(s, id, "")
	return err
}

func (j *judged) Availability(s protocol.Session, ids []string) ([]byte, *protocol.Error) {
	v, err := j.life.Availability(s, ids)
	if err != nil {
		return nil, err
	}
	text, fault := json.Marshal(v)
	if fault != nil {
		return nil, protocol.Fail(protocol.InternalError, "The availability cannot be written as JSON.")
	}
	return text, nil
}

func (j *judged) Command(s protocol.Session, argv []string, stdin []byte) ([]byte, int) {
	return j.d.within(context.Background(), s, argv, stdin)
}

func (j *judged) Trace() conformance.Trace {
	n := j.watch.Counts()
	return conformance.Trace{Minted: n.Minted, Spawned: n.Spawned, Intents: n.Intents, Outcomes: n.Outcomes, Denials: n.Denials}
}

func (j *judged) Close() error {
	j.done()
	return nil
}
