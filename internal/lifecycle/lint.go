package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"hcpx/internal/gate"
	"hcpx/internal/lint"
	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

// Lint checks pack directories (§14.2). It needs no grant, changes nothing and touches no store; packs of
// one call see each other. The refusal says that nothing was judged.
func (l *Lifecycle) Lint(dirs []string) (LintView, *protocol.Error) {
	var sources []lint.Source
	var unreadable []protocol.Issue
	for _, dir := range dirs {
		src, err := lint.Open(dir)
		if err != nil {
			unreadable = append(unreadable, notReadable(dir, err))
			continue
		}
		sources = append(sources, src)
	}
	issues, err := lint.Run(sources, lint.Options{BootstrapDigest: BootstrapDigest, Limits: l.Limits, Machine: l.Machine})
	if err != nil {
		return LintView{Issues: []protocol.Issue{}}, err
	}
	if len(dirs) > 1 && len(sources) == 1 {
		for i := range issues {
			issues[i].Dir = sources[0].Dir
		}
	}
	if len(dirs) == 1 && len(unreadable) == 1 {
		unreadable[0].Dir = ""
	}
	return LintView{Issues: sortedIssues(append(unreadable, issues...))}, nil
}

// notReadable is pack.unreadable for a source that can't be opened at all.
func notReadable(dir string, err error) protocol.Issue {
	i := protocol.NewIssue("pack.unreadable", ".", fmt.Sprintf("%s cannot be read as a pack: %s.", dir, sentenceEnd(plainReason(err))))
	i.Dir = dir
	return i
}

// plainReason is the last word of a file error, without the path, which the message names already.
func plainReason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// lintSources is the lint of install (HCP-11.1-2a): never skipped, all sources before any is installed,
// and against the packs that the store has.
func (l *Lifecycle) lintSources(sources []*source) ([]protocol.Issue, *protocol.Error) {
	var list []lint.Source
	for _, src := range sources {
		list = append(list, lint.Source{Dir: src.shown, FS: src.fs, Name: src.name})
	}
	issues, err := lint.Run(list, lint.Options{Installed: l.installedPack, BootstrapDigest: BootstrapDigest, Limits: l.Limits, Machine: l.Machine})
	return sortedIssues(issues), err
}

// installedPack opens a pack of the store for cross-pack rules; nil when there is none that can be used.
func (l *Lifecycle) installedPack(id string) *pack.Pack {
	loaded, err := l.Gate.Installed(id)
	if err != nil {
		return nil
	}
	return &pack.Pack{ID: id, FS: os.DirFS(loaded.Dir), Manifest: loaded.Manifest, Policy: loaded.Policy}
}

// lintInstalled lints a pack where it lies, for doctor: a newer runtime may know more.
func (l *Lifecycle) lintInstalled(id string) ([]protocol.Issue, *protocol.Error) {
	src, err := lint.Open(l.Store.Dir(id))
	if err != nil {
		return []protocol.Issue{notReadable(id, err)}, nil
	}
	src.Dir, src.Name = id, id
	options := lint.Options{Installed: l.installedPack, Limits: l.Limits, Machine: l.Machine}
	if id == gate.Bootstrap {
		options.BootstrapDigest = BootstrapDigest
	}
	return lint.Run([]lint.Source{src}, options)
}

func lintFailed(issues []protocol.Issue, dirs ...string) *protocol.Error {
	count := 0
	for _, i := range issues {
		if i.Severity == protocol.SeverityError {
			count++
		}
	}
	message := fmt.Sprintf("Nothing was installed: lint found %d errors.", count)
	if count == 1 {
		message = "Nothing was installed: lint found an error."
	}
	return protocol.Fail(protocol.LintFailed, message).With("issues", issues).WithHint(lintHint(dirs))
}

// lintHint shows all issues again. Lint reads directories; the source of an archive is elsewhere.
func lintHint(sources []string) string {
	dirs := slices.DeleteFunc(slices.Clone(sources), func(source string) bool { return archiveKind(source) != nil })
	if len(dirs) == 0 {
		return "once it is mended: hcpx install " + protocol.Words(sources...)
	}
	return "hcpx lint " + protocol.Words(dirs...)
}

func sortedIssues(issues []protocol.Issue) []protocol.Issue {
	if issues == nil {
		issues = []protocol.Issue{}
	}
	protocol.SortIssues(issues)
	return issues
}
