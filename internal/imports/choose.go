package imports

import (
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/grant"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// choice is one pattern of --include or --exclude: kind and glob, in which * stands for anything.
type choice struct{ kind, glob string }

// choices reads patterns: tag:NAME, path:/GLOB, method:GET, operation:ID; a bare /GLOB is a path.
func choices(list []string) ([]choice, *protocol.Error) {
	var out []choice
	for _, s := range list {
		kind, glob, found := strings.Cut(s, ":")
		if strings.HasPrefix(s, "/") {
			kind, glob, found = "path", s, true
		}
		if !found || glob == "" || !slices.Contains([]string{"tag", "path", "method", "operation"}, kind) {
			return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("%s chooses nothing; a choice is tag:NAME, path:/GLOB, method:GET or operation:ID.", jsondoc.Quote(s))).
				WithHint("hcpx import openapi --help")
		}
		if kind == "method" {
			glob = strings.ToLower(glob)
		}
		out = append(out, choice{kind, glob})
	}
	return out, nil
}

func (c choice) fits(op *operation) bool {
	switch c.kind {
	case "tag":
		return slices.ContainsFunc(op.tags, func(t string) bool { return grant.Glob(c.glob, t) })
	case "path":
		return grant.Glob(c.glob, op.path)
	case "method":
		return grant.Glob(c.glob, op.method)
	default:
		return grant.Glob(c.glob, text(op.node, "operationId")) || grant.Glob(c.glob, op.key)
	}
}

// choose keeps what the choices ask for: of each kind of include one that fits, and no exclude.
func (b *builder) choose() *protocol.Error {
	include, err := choices(b.Include)
	if err != nil {
		return err
	}
	exclude, err := choices(b.Exclude)
	if err != nil {
		return err
	}
	for _, op := range b.all {
		asked, met := map[string]bool{}, map[string]bool{}
		for _, c := range include {
			asked[c.kind] = true
			met[c.kind] = met[c.kind] || c.fits(op)
		}
		out := slices.ContainsFunc(exclude, func(c choice) bool { return c.fits(op) })
		for kind := range asked {
			out = out || !met[kind]
		}
		if !out && b.reach(op) {
			b.chosen = append(b.chosen, op)
		}
	}
	if len(b.chosen) > 0 {
		return nil
	}
	said := "has no operation"
	if len(b.all) > 0 {
		said = fmt.Sprintf("has %d operations, and none of them is left", len(b.all))
	}
	e := fail(noOperations, fmt.Sprintf("%s %s.", b.src.Name, said), "hcpx import openapi --help")
	if tags := b.tags(); len(b.all) > 0 && len(tags) > 0 {
		e.With("tags", tags).WithHint("choose by one of its tags, as --include " + tagChoice(tags))
	}
	if len(b.left) > 0 {
		e.With("left_out", b.left[:min(len(b.left), maxTold)])
	}
	return e
}

// tagChoice is a choice of a tag, as a shell takes it.
func tagChoice(tags []string) string {
	for _, t := range tags {
		if lineOf(t, 60) {
			return shellWord("tag:" + t)
		}
	}
	return "tag:NAME"
}

// shellWord is a word that a shell takes as it stands.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// tags are those of the document's operations, in its order.
func (b *builder) tags() []string {
	var out []string
	for _, op := range b.all {
		for _, t := range op.tags {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}
