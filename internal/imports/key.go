package imports

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"hcpx/internal/manifest"
)

// The lengths of names: a tool name of the two is one that no host cuts (§12.2).
const (
	toolName = 53
	maxID    = 20
)

// keyer gives each operation of a document its verb_key (§3.1). A key depends on the operation and on those before it in
// the document, never on what was chosen, so that choosing others later renames nothing.
type keyer struct {
	pack  string
	limit int
	tools map[string]bool
}

func newKeyer(pack string) *keyer {
	return &keyer{pack: pack, limit: toolName - len(pack) - 2, tools: map[string]bool{}}
}

// key is the key for an operation: of its operationId, else of its path and method.
func (k *keyer) key(id, method, path string) string {
	segments := k.ofID(id)
	if len(segments) == 0 {
		segments = ofPath(method, path)
	}
	key := k.short(strings.Join(segments, "."), method+" "+path)
	for _, candidate := range []string{key, k.short(key+"-"+method, method+" "+path), k.marked(key, method+" "+path), k.marked(key, id+" "+method+" "+path)} {
		if tool := manifest.ToolName(k.pack, candidate); !k.tools[strings.ReplaceAll(tool, "-", "_")] {
			k.tools[strings.ReplaceAll(tool, "-", "_")] = true
			return candidate
		}
	}
	return "" // the same method and path twice: there is no such document
}

// ofID parts an operationId at dots and slashes. The pack's own name before it is left out.
func (k *keyer) ofID(id string) []string {
	var out []string
	for _, part := range strings.FieldsFunc(id, func(r rune) bool { return r == '.' || r == '/' || r == ':' }) {
		if words := wordsOf(part); len(words) > 0 {
			out = append(out, strings.Join(words, "-"))
		}
	}
	if len(out) > 1 && out[0] == k.pack {
		out = out[1:]
	}
	return fit(out)
}

// fit makes segments of words: each begins with a letter, and there are five at most.
func fit(segments []string) []string {
	var out []string
	for _, s := range segments {
		if s[0] >= '0' && s[0] <= '9' {
			if len(out) > 0 {
				out[len(out)-1] += "-" + s
				continue
			}
			s = "op-" + s
		}
		out = append(out, s)
	}
	if len(out) > 5 {
		out = append([]string{strings.Join(out[:len(out)-4], "-")}, out[len(out)-4:]...)
	}
	return out
}

// verbs are what methods do to what a path names.
var verbs = map[string]string{"get": "get", "head": "head", "post": "create", "put": "replace", "patch": "update", "delete": "delete", "options": "options", "trace": "trace"}

// ofPath is the path's own words, without versions, and what the method does; a parameter at the end says by what.
func ofPath(method, path string) []string {
	var out []string
	by := ""
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '#' || r == '?' }) {
		words := wordsOf(part)
		switch {
		case len(words) == 0:
		case strings.HasPrefix(part, "{") && strings.HasSuffix(part, "}"):
			by = "-by-" + strings.Join(words, "-")
		case version(words) && len(out) == 0:
		default:
			out, by = append(out, strings.Join(words, "-")), ""
		}
	}
	return fit(append(out, verbs[method]+by))
}

// version says whether the words are those of a version, or of an API's root.
func version(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool {
		return w != "api" && w != "rest" && w != "v" && strings.Trim(w, "v0123456789") != ""
	})
}

// filler are words that a long key does without.
const filler = " the a an of for by with and in to from using via on api controller "

// short cuts a key that is too long: filler words first, then the end, which a mark stands for.
func (k *keyer) short(key, of string) string {
	if len(key) <= k.limit {
		return key
	}
	segments := strings.Split(key, ".")
	for i, s := range segments {
		words := strings.Split(s, "-")
		if kept := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.Contains(filler, " "+w+" ") }); len(kept) > 0 && kept[0][0] > '9' {
			segments[i] = strings.Join(kept, "-")
		}
	}
	if key = strings.Join(segments, "."); len(key) <= k.limit {
		return key
	}
	return k.marked(key, of)
}

// marked is a key's beginning and its last word, with a mark of the operation.
func (k *keyer) marked(key, of string) string {
	sum := sha256.Sum256([]byte(of))
	mark := "-x" + hex.EncodeToString(sum[:])[:5]
	if len(key)+len(mark) <= k.limit {
		return key + mark
	}
	if i := strings.LastIndexByte(key, '-'); i > strings.LastIndexByte(key, '.') && len(key)-i <= 12 {
		mark = key[i:] + mark
	}
	limit := k.limit - len(mark)
	key = key[:limit]
	if i := strings.LastIndexAny(key, "-."); i > limit/2 {
		key = key[:i]
	}
	return strings.TrimRight(key, "-.") + mark
}

// packID is the id that is asked for, or one of the title, the server's host, or else "api".
func packID(asked, title, host string) string {
	if asked != "" {
		return asked
	}
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	if len(labels) > 1 {
		labels = labels[1:2]
	}
	for _, words := range [][]string{titleWords(title), wordsOf(strings.Join(labels, " "))} {
		id := ""
		for _, w := range words {
			switch {
			case id == "" && (w[0] < 'a' || len(w) > maxID):
			case id == "":
				id = w
			case len(id)+1+len(w) <= maxID:
				id += "-" + w
			}
		}
		switch {
		case id == "":
		case manifest.Reserved(id):
			return id + "-api"
		default:
			return id
		}
	}
	return "api"
}

// titleWords are the words of a title that tell it from others; a name such as GitHub is one word.
func titleWords(title string) []string {
	words := strings.FieldsFunc(strings.NewReplacer("'s ", " ", "’s ", " ").Replace(strings.ToLower(title)), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	kept := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return strings.Contains(" api apis rest the a an of for and openapi swagger specification spec documentation http web service services public official spec extension ", " "+w+" ") ||
			strings.Trim(w, "v0123456789") == ""
	})
	return kept[:min(len(kept), 3)]
}
