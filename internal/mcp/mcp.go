// Package mcp is the MCP face of §12.2: packs for an agent host that speaks the Model Context Protocol, over stdio or
// loopback HTTP, by the official SDK, which stays in here.
//
// Nouns: Config (what the face is given), the server (one of them, for all clients), the session of a call (who acts: the
// client's name decides where marks did not, §9.3), a question (a gated write that a person is asked about through his
// client, §15.2).
//
// It holds an Executor and no pipeline: a tool call becomes the bytes of an envelope, and the answer is the Result as it
// is. What is listed is asked of lifecycle for the one who asks, at each call, so that no list outlives a grant. It refuses
// nothing by itself but what no envelope could be made of. It starts no program, and nothing but the protocol goes to
// stdout.
package mcp

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hcpx/internal/lifecycle"
	"hcpx/internal/projection"
	"hcpx/internal/protocol"
	"hcpx/internal/session"
)

// Config is what the face is given.
type Config struct {
	Version string
	Shape   projection.Shape
	Packs   []string         // only these packs; nil: all
	Session protocol.Session // Principal "": the client's name decides
	// Person answers what is asked through a client (§15.2); "": no client is asked.
	Person protocol.Principal
	Exec   protocol.Executor
	// Refuse answers what may not run here, through the steps before it and into the audit (§9.7).
	Refuse func(ctx context.Context, s protocol.Session, envelope []byte, why *protocol.Error) protocol.Result
	Life   *lifecycle.Lifecycle
	Shown  func(lifecycle.ApprovalView) string // what a person decides by
	NewID  func() string                       // names what is kept of a large answer
	Pulse  func() string                       // differs once the store may have changed
	Now    func() time.Time
	Log    io.Writer     // stderr
	Every  time.Duration // between looks at the store, and words of progress; 0 = as usual
}

// The usual spans.
const (
	watchEvery    = time.Second
	progressEvery = 5 * time.Second
	// drain is how long running calls may go on once a client has closed its end, which may have all it wanted to ask in
	// one pipe.
	drain = 10 * time.Second
)

// maxCalls bounds how many commands run at once; the others wait.
const maxCalls = 32

// server is the face, for all its clients.
type server struct {
	Config
	mcp  *sdk.Server
	log  *slog.Logger
	ctx  context.Context // ends what runs
	stop context.CancelFunc

	calls  sync.WaitGroup
	slots  chan struct{}
	modern atomic.Bool // the client of stdio negotiated a version without batches
	asked  questions
	watch  watcher
}

func newServer(ctx context.Context, c Config) *server {
	v := &server{Config: c, slots: make(chan struct{}, maxCalls)}
	v.ctx, v.stop = context.WithCancel(ctx)
	v.asked.now = c.Now
	v.log = slog.New(slog.NewTextHandler(c.Log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	v.mcp = sdk.NewServer(&sdk.Implementation{Name: "hcpx", Version: c.Version}, &sdk.ServerOptions{
		Logger: v.log,
		Capabilities: &sdk.ServerCapabilities{
			Tools:      &sdk.ToolCapabilities{ListChanged: c.Shape == projection.Commands},
			Resources:  &sdk.ResourceCapabilities{ListChanged: true},
			Extensions: map[string]any{skillsExtension: map[string]any{}},
		},
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { *c = fresh },
	})
	v.mcp.AddTool(tool(projection.Tools(nil, projection.Single)[0]), v.call)
	v.mcp.AddTool(tool(projection.Tools(nil, projection.Single)[1]), v.readSkill)
	v.addSkills()
	v.mcp.AddReceivingMiddleware(v.receive)
	return v
}

// fresh: what is listed depends on who asks, and holds for this moment.
var fresh = sdk.Cacheable{TTLMs: 0, CacheScope: "private"}

// close ends what runs and waits for it: a cancelled command leaves nothing behind (§6.9).
func (v *server) close() {
	v.stop()
	v.calls.Wait()
}

// as is the Session of a call: the launch decides who acts, else the client's name (§9.3).
func (v *server) as(client *sdk.Implementation) protocol.Session {
	s := v.Session
	if s.Principal == "" {
		name := ""
		if client != nil {
			name = client.Name
		}
		s.Principal = session.Client(name)
	}
	return s
}

// offered are the packs as the client sees them now; none where the store cannot be read, which is in the log.
func (v *server) offered(s protocol.Session) []projection.Pack {
	packs, err := v.Life.Offered(s, v.Packs)
	if err != nil {
		v.log.Error(err.Message)
	}
	return packs
}

// receive is around every request: what a client lists is made for it, at this moment (§12.2.6).
func (v *server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if r, is := req.(*sdk.CallToolRequest); is && v.Shape == projection.Commands {
			named, err := v.named(r)
			if err != nil {
				return nil, err
			}
			req = named
		}
		res, err := next(ctx, method, req)
		if err != nil {
			return nil, err
		}
		who, known := req.(interface{ ClientInfo() *sdk.Implementation })
		if !known {
			return res, nil
		}
		switch r := res.(type) {
		case *sdk.InitializeResult:
			v.modern.Store(r.ProtocolVersion >= "2025-06-18")
			r.Instructions = projection.Instructions(v.offered(v.as(who.ClientInfo())), v.Shape)
		case *sdk.DiscoverResult:
			r.Instructions = projection.Instructions(v.offered(v.as(who.ClientInfo())), v.Shape)
		case *sdk.ListToolsResult:
			r.Tools = v.tools(v.as(who.ClientInfo()))
		case *sdk.ListResourcesResult:
			r.Resources = v.resources(v.as(who.ClientInfo()))
		}
		return res, nil
	}
}
