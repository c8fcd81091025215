package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hcpx/internal/projection"
	"hcpx/internal/protocol"
)

// Skills are served the standard way too (SEP-2640): each offered pack's skill is the resource skill://<pack>/SKILL.md,
// skills/list and skills/get tell its digest. Only what the client's Principal could use is there (§12.2).

const skillsExtension = "io.modelcontextprotocol/skills"

// skillParams are those of both methods; a listing is one page.
type skillParams struct {
	sdk.ParamsBase
	URI    string `json:"uri,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

type skillEntry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []skillFile     `json:"resources"`
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

type skillsResult struct {
	sdk.ResultBase
	ResultType string       `json:"resultType"`
	Skills     []skillEntry `json:"skills"`
	sdk.Cacheable
}

type skillResult struct {
	sdk.ResultBase
	ResultType string     `json:"resultType"`
	Skill      skillEntry `json:"skill"`
	sdk.Cacheable
}

func (v *server) addSkills() {
	v.mcp.AddResourceTemplate(skillTemplate(), v.readResource)
	err := sdk.AddReceivingCustomMethod(v.mcp, "skills/list", func(_ context.Context, ss *sdk.ServerSession, p *skillParams) (*skillsResult, error) {
		out := &skillsResult{ResultType: complete, Skills: []skillEntry{}, Cacheable: fresh}
		for _, one := range v.offered(v.as(clientOf(ss, p))) {
			out.Skills = append(out.Skills, entryOf(one))
		}
		return out, nil
	})
	err = errors.Join(err, sdk.AddReceivingCustomMethod(v.mcp, "skills/get", func(_ context.Context, ss *sdk.ServerSession, p *skillParams) (*skillResult, error) {
		one, known := v.skillAt(v.as(clientOf(ss, p)), p.URI)
		if !known {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("There is no skill %q; skills/list has those that there are.", p.URI)}
		}
		return &skillResult{ResultType: complete, Skill: entryOf(one), Cacheable: fresh}, nil
	}))
	if err != nil {
		v.log.Error("skills are resources alone: " + err.Error())
	}
}

func skillTemplate() *sdk.ResourceTemplate {
	return &sdk.ResourceTemplate{Name: "skill", URITemplate: "skill://{pack_id}/SKILL.md", MIMEType: markdown, Description: "The skill of an activated pack."}
}

const (
	complete = "complete"
	markdown = "text/markdown"
)

// clientOf is the client of a request: since 2026-07-28 each one names it, and there need be no session.
func clientOf(ss *sdk.ServerSession, p *skillParams) *sdk.Implementation {
	return (&sdk.ServerRequest[*skillParams]{Session: ss, Params: p}).ClientInfo()
}

func skillURI(pack string) string { return "skill://" + pack + "/SKILL.md" }

func entryOf(p projection.Pack) skillEntry {
	text := projection.Skill(p)
	sum := sha256.Sum256(text)
	return skillEntry{URI: skillURI(p.ID), Frontmatter: raw(projection.Front(p)),
		Resources: []skillFile{{URI: skillURI(p.ID), Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: len(text)}}}
}

// skillAt is the offered pack whose skill a URI names.
func (v *server) skillAt(s protocol.Session, uri string) (projection.Pack, bool) {
	id, is := strings.CutPrefix(uri, "skill://")
	id, file := strings.CutSuffix(id, "/SKILL.md")
	if is && file {
		for _, p := range v.offered(s) {
			if p.ID == id {
				return p, true
			}
		}
	}
	return projection.Pack{}, false
}

func (v *server) readResource(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	p, known := v.skillAt(v.as(req.ClientInfo()), req.Params.URI)
	if !known {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: markdown, Text: string(projection.Skill(p))}}}, nil
}

// resources are the skills as resources/list has them.
func (v *server) resources(s protocol.Session) []*sdk.Resource {
	list := []*sdk.Resource{}
	packs := v.offered(s)
	v.watch.saw(s, packs)
	for _, p := range packs {
		list = append(list, &sdk.Resource{URI: skillURI(p.ID), Name: p.ID, Description: projection.About(p), MIMEType: markdown, Size: int64(len(projection.Skill(p)))})
	}
	return list
}
