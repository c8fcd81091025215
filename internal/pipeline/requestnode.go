package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
)

// maxShownBody bounds a body that is shown whole; of a longer one, or of bytes, size and hash are.
const maxShownBody = 16 << 10

// requestNode is the request of an openapi command as confirm, plan and approval show it (§3.6): all of it, but the
// credential, of which the places are named.
func requestNode(q *adapter.Request) *jsondoc.Node {
	headers := jsondoc.Obj()
	for _, f := range q.Header {
		headers.Members = append(headers.Members, jsondoc.Member{Key: f.Name, Value: jsondoc.Str(f.Value)})
	}
	n := object("method", jsondoc.Str(q.Method), "url", jsondoc.Str(q.URL), "headers", headers, "credential", stringsNode(q.Credential))
	if len(q.Files) > 0 {
		var list []*jsondoc.Node
		for _, f := range q.Files {
			list = append(list, object("path", jsondoc.Str(f.Path), "bytes", number(uint64(len(f.Data))), "sha256", hashNode(f.Data)))
		}
		n = n.With("files", jsondoc.Arr(list...))
	}
	if q.Body == nil {
		return n
	}
	if len(q.Files) == 0 && len(q.Body) <= maxShownBody && utf8.Valid(q.Body) {
		n = n.With("body", jsondoc.Str(string(q.Body)))
	}
	return n.With("body_bytes", number(uint64(len(q.Body)))).With("body_sha256", hashNode(q.Body))
}

func hashNode(data []byte) *jsondoc.Node {
	sum := sha256.Sum256(data)
	return jsondoc.Str(hex.EncodeToString(sum[:]))
}
