package cli

import (
	"bytes"
	"context"

	"hcpx/internal/protocol"
)

// builtin runs a command line of the bootstrap pack in this process (§11.4): the same tree and the same
// App, as the Session that passed the pipeline, in JSON, without terminal and questions. Flags cannot
// change who acts: the Session is fixed. argv is without the program.
func (d *deps) builtin(ctx context.Context, s protocol.Session, argv []string) (stdout []byte, code int) {
	return d.within(ctx, s, argv, nil)
}

// within runs a command line in this process, as a fixed Session and with nothing of its own but what it reads.
func (d *deps) within(ctx context.Context, s protocol.Session, argv []string, stdin []byte) (stdout []byte, code int) {
	var out, notes bytes.Buffer
	env := d.env
	env.In, env.Out, env.Err = bytes.NewReader(stdin), &out, &notes
	env.InTTY, env.OutTTY, env.ErrTTY = false, false, false
	env.Dir = s.Dir
	env.Self, env.Become, env.KeepPipe, env.Daemon = nil, nil, nil, nil // this process has a run to finish
	inner := &deps{env: env, asJSON: true, opened: d.opened, session: &s}
	code = inner.run(ctx, argv)
	return out.Bytes(), code
}
