package openapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// How much of a refused body is shown, and how deep a result may nest.
const (
	excerptBytes = 4 << 10
	resultDepth  = 128
)

// answer makes the result: JSON as its value, text as text, other bytes as a file, nothing as null. A status outside of 2xx is
// upstream_error.
func (s *sending) answer(rep *reply, out *adapter.Output) *protocol.Error {
	switch {
	case rep.status < 200 || rep.status > 299:
		return s.refused(rep)
	case rep.over:
		return protocol.Fail(protocol.OutputTooLarge, fmt.Sprintf("%s answered with more than %d bytes (setting limits.output).", s.server.host, s.run.Limits.Output)).With("limit", "output")
	case rep.header.Get("Content-Encoding") != "" && !strings.EqualFold(rep.header.Get("Content-Encoding"), "identity"):
		return protocol.Fail(protocol.InvalidResult, s.server.host+" answered in an encoding that it was not asked for.")
	}
	media := rep.header.Get("Content-Type")
	kind, charset := essence(media), charsetOf(media)
	if rep.head || rep.status == http.StatusNoContent || rep.status == http.StatusResetContent || len(rep.body) == 0 && !strings.HasPrefix(kind, "text/") {
		out.Value = jsondoc.NullNode()
		return nil
	}
	body := s.mask(rep.body, false)
	switch {
	case isJSON(media) || kind == "" && s.op.json && wellFormed(body):
		return s.value(body, out)
	case (kind == "" && utf8.Valid(body) || isText(media)) && charset != "":
		out.Value, out.Replaced = text(body, charset)
		return nil
	}
	return s.file(kind, body, out)
}

func (s *sending) mask(body []byte, torn bool) []byte {
	if s.run.Mask == nil {
		return body
	}
	return s.run.Mask(body, torn)
}

// refused is an answer that means no, with the beginning of what came with it.
func (s *sending) refused(rep *reply) *protocol.Error {
	name := http.StatusText(rep.status)
	if name != "" {
		name = " " + name
	}
	sentence := fmt.Sprintf("%s answered %d%s.", s.server.host, rep.status, name)
	if rep.status >= 300 && rep.status <= 399 {
		sentence = fmt.Sprintf("%s answered %d%s, and is not followed: only GET and HEAD are, within its origin and %d times.", s.server.host, rep.status, name, maxRedirects)
	}
	e := protocol.Fail(protocol.UpstreamError, sentence).With("status", rep.status).With("body", excerpt(s.mask(rep.body, rep.over))).With("attempts", s.attempts)
	if wait := rep.header.Get("Retry-After"); wait != "" && busy(rep.status) && len(wait) < 64 {
		e = e.With("retry_after", string(s.mask([]byte(wait), false)))
	}
	return e
}

// excerpt is the beginning of a body as text, cut at a character's border.
func excerpt(body []byte) string {
	text, _ := adapter.Decode(body)
	if len(text) <= excerptBytes {
		return text
	}
	text = text[:excerptBytes]
	for len(text) > 0 {
		if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size > 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text
}

// wellFormed says whether a body of no named kind begins as a JSON value does and is one.
func wellFormed(body []byte) bool {
	_, faults := jsondoc.Parse(body, jsondoc.Limits{Bytes: len(body) + 1, Depth: resultDepth})
	return len(faults) == 0
}

// value reads JSON, each number with its exact text.
func (s *sending) value(body []byte, out *adapter.Output) *protocol.Error {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	n, faults := jsondoc.Parse(body, jsondoc.Limits{Bytes: len(body) + 1, Depth: resultDepth})
	if len(faults) > 0 {
		line, column := jsondoc.Place(body, faults[0].Offset)
		return protocol.Fail(protocol.InvalidResult, fmt.Sprintf("What %s answered is not one JSON value, at line %d, column %d.", s.server.host, line, column)).
			With("line", line).With("column", column)
	}
	out.Value = n
	return nil
}

// charsetOf is how a text is written: utf-8 where nothing is said, "" for what is not read as text.
func charsetOf(media string) string {
	_, rest, _ := strings.Cut(media, ";")
	for piece := range strings.SplitSeq(rest, ";") {
		name, value, _ := strings.Cut(piece, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "charset") {
			continue
		}
		switch strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`)) {
		case "utf-8", "utf8", "us-ascii", "ascii":
		case "iso-8859-1", "latin1":
			return "latin1"
		default:
			return ""
		}
	}
	return "utf-8"
}

func text(body []byte, charset string) (*jsondoc.Node, int) {
	if charset == "latin1" {
		runes := make([]rune, len(body))
		for i, c := range body {
			runes[i] = rune(c)
		}
		return jsondoc.Str(string(runes)), 0
	}
	s, replaced := adapter.Decode(body)
	return jsondoc.Str(s), replaced
}

// file keeps bytes as a file of their own; the result says where (§12).
func (s *sending) file(kind string, body []byte, out *adapter.Output) *protocol.Error {
	if s.run.Keep == nil {
		return protocol.Fail(protocol.InvalidResult, s.server.host+" answered with bytes, and there is no place to keep them.")
	}
	path, err := s.run.Keep("answer"+extension(kind), body)
	if err != nil {
		return protocol.Fail(protocol.InternalError, "What "+s.server.host+" answered could not be kept: "+protocol.Clause(err.Error())+".").With("ran", true)
	}
	out.Value = jsondoc.Obj(jsondoc.Member{Key: "file", Value: jsondoc.Str(path)}, jsondoc.Member{Key: "bytes", Value: jsondoc.Num(fmt.Sprint(len(body)))})
	if kind != "" {
		out.Value = out.Value.With("media_type", jsondoc.Str(kind))
	}
	return nil
}

// extension is the end of a file's name by which programs know its kind.
func extension(kind string) string {
	known := map[string]string{"application/pdf": ".pdf", "application/zip": ".zip", "application/gzip": ".gz", "application/x-tar": ".tar", "image/png": ".png",
		"image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "audio/mpeg": ".mp3", "video/mp4": ".mp4",
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx"}
	if end := known[kind]; end != "" {
		return end
	}
	return ".bin"
}
