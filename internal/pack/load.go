package pack

import (
	"fmt"
	"io/fs"

	"hcpx/internal/manifest"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/skill"
)

// MaxRequired is the most bytes that each of the three required files may have (§2.1).
const MaxRequired = 1 << 20

// Limits bound a pack (§2.1). Zero means the default.
type Limits struct {
	Files int   // files and links; as many directories
	Bytes int64 // sum of all files
}

// The defaults of Limits.
const (
	DefaultFiles = 4096
	DefaultBytes = 64 << 20
)

// required are the files that make a directory a pack (§2.1, HCP-14.2-1).
var required = [3]string{manifest.File, policy.File, skill.File}

// Load reads the whole pack and reports what makes it none (§2.1), with the issues that decoding manifest
// and policy gives. The Pack is never nil; it has what could be read.
func Load(fsys fs.FS, lim Limits) (*Pack, []protocol.Issue) {
	if lim.Files <= 0 {
		lim.Files = DefaultFiles
	}
	if lim.Bytes <= 0 {
		lim.Bytes = DefaultBytes
	}
	w := walker{fsys: fsys, lim: lim, content: map[string][]byte{}, seen: map[string]bool{}}
	w.dir(".")
	p := &Pack{FS: fsys, Files: w.files, Skill: w.content[skill.File]}
	sortFiles(p.Files)
	issues := w.issues
	if !w.unlisted {
		for _, name := range required {
			if !w.seen[name] {
				issues = append(issues, protocol.NewIssue("pack.missing-file", name, "The required file "+name+" is missing."))
			}
		}
	}
	if src, ok := w.content[manifest.File]; ok {
		m, found := manifest.Decode(src)
		issues = append(issues, found...)
		if p.Manifest = m; m != nil {
			p.ID = m.ID
		}
	}
	if src, ok := w.content[policy.File]; ok {
		pol, found := policy.Decode(src)
		issues = append(issues, found...)
		p.Policy = pol
	}
	protocol.SortIssues(issues)
	return p, issues
}

// Open reads what an exec needs of an installed pack: manifest and policy. A pack whose files have errors
// is not opened; that the bootstrap pack may have its id was decided when it was installed.
func Open(fsys fs.FS) (*Pack, error) {
	src, err := fs.ReadFile(fsys, manifest.File)
	if err != nil {
		return nil, err
	}
	m, issues := manifest.Decode(src)
	if err := firstError(manifest.Lift(issues)); err != nil {
		return nil, err
	}
	if src, err = fs.ReadFile(fsys, policy.File); err != nil {
		return nil, err
	}
	pol, issues := policy.Decode(src)
	if err := firstError(issues); err != nil {
		return nil, err
	}
	if m == nil || pol == nil {
		return nil, fmt.Errorf("%s or %s is no JSON object", manifest.File, policy.File)
	}
	return &Pack{ID: m.ID, FS: fsys, Manifest: m, Policy: pol}, nil
}

// firstError is the first issue that is an error, as a Go error.
func firstError(issues []protocol.Issue) error {
	for _, i := range issues {
		if i.Severity == protocol.SeverityError {
			return fmt.Errorf("%s:%d:%d: %s: %s", i.File, i.Line, i.Column, i.Code, i.Message)
		}
	}
	return nil
}
