// Package pack loads a harness pack (§2): the three required files, limits, links, digest. Load reads
// everything and reports every issue (lint, install); Open reads only manifest and policy (exec).
// It never reads outside the pack.
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

// Record is what install keeps to prove at exec that nothing changed (§2.4).
type Record struct {
	Digest string                        `json:"digest"` // sha256:…
	Stamps map[string]protocol.FileStamp `json:"stamps"` // by path; links have their target's hash and no stat
	Links  map[string]string             `json:"links,omitempty"`
	Dirs   map[string]protocol.FileStamp `json:"dirs,omitempty"` // a new or removed file changes its directory
}
