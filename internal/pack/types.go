// Package pack loads a harness pack (§2): the three required files, limits, links, digest. Load reads
// everything and reports every issue (lint, install); Open reads only manifest and policy (exec).
// It never reads outside the pack.
//
// A pack comes as an fs.FS; of a directory take os.OpenRoot(dir).FS(), which follows no link out of it.
// Seal records what an installed pack is, Intact says at exec whether it still is that (§2.4).
package pack

import (
	"io/fs"

	"hcpx/internal/manifest"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
)

// Pack is a loaded pack. Manifest and Policy are nil when their file was missing or not JSON.
type Pack struct {
	ID       string
	FS       fs.FS
	Manifest *manifest.Manifest
	Policy   *policy.Policy
	Skill    []byte // HARNESS.md; nil after Open
	Files    []File // in byte order of path; nil after Open
}

// File is one file or link of a pack.
type File struct {
	Path string // slash-separated, relative
	Mode byte   // 'x' executable, '-' plain, 'l' link (§2.4)
	Size int64
	Sum  string // hex SHA-256 of the content or the link target
}

// Record is what install keeps to prove at exec that nothing changed (§2.4). All keys are slash-separated
// paths; the pack's own directory is ".".
type Record struct {
	Digest string                        `json:"digest"` // sha256:…
	Stamps map[string]protocol.FileStamp `json:"stamps"` // of the files
	Links  map[string]string             `json:"links,omitempty"`
	Dirs   map[string]protocol.FileStamp `json:"dirs"` // a new or removed file changes its directory
}
