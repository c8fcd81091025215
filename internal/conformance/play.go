package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// play is one vector while it runs.
type play struct {
	ctx     context.Context
	rt      Runtime
	vector  Vector
	dir     string // the vector's own directory
	packs   string // the latest copies of gold packs
	copies  int
	session protocol.Session
	seen    Trace  // what the last "ran" had seen
	asked   string // the approval_id of the last refusal that had one
	update  bool
}

func (p *play) prepare() error {
	work := filepath.Join(p.dir, "work")
	p.session = protocol.Session{
		ID: "default", Principal: "human:ada", Tenant: "local", Dir: work, Workspace: work, How: "vector",
	}
	return os.Mkdir(work, 0o700)
}

// do runs one line of a script. The commands:
//
//	gold ID…                     fresh copies of gold packs; the commands below work on the latest copies
//	merge ID/FILE JSON           change a JSON file (null removes a member)
//	put ID/FILE NAME             write a file of the archive; append ID/FILE TEXT adds a line
//	remove ID/FILE               chmod ID/FILE MODE · link ID/FILE TARGET
//	lint ID… [: CODE…]           the errors found, "clean" when there are not even warnings
//	as PRINCIPAL · session ID · project NAME|-
//	install [--bare] ID… [: CODE] and activate, connect, deactivate, disconnect, uninstall, allow
//	grant JSON [: CODE]
//	approve [: CODE] · reject [: CODE]   what was asked last; "$approval" in an envelope is its id
//	exec FILE WANT · plan FILE WANT · availability WANT [ID…]
//	words FILE WANT EXIT         a command line of the face, one word a line (§12.1)
//	stream FILE WANT EXIT        envelopes, one a line; WANT is the list of the answers (§6.8)
//	untouched                    nothing was written but the store and the packs' copies
//	ran nothing | NAME=N…        what the doors did since the last "ran"
func (p *play) do(l Line) error {
	args := l.Words[1:]
	switch l.Words[0] {
	case "gold":
		return p.gold(args)
	case "merge", "put", "append", "remove", "chmod", "link":
		return p.change(l)
	case "lint":
		return p.lint(args)
	case "as", "session", "project":
		return p.become(l.Words[0], args)
	case "exec", "plan":
		return p.exec(l.Words[0], args)
	case "approve", "reject":
		return p.decide(l.Words[0], args)
	case "words", "stream":
		return p.command(l.Words[0], args)
	case "availability":
		return p.availability(args)
	case "ran":
		return p.ran(args)
	case "untouched":
		return p.untouched()
	case "grant":
		text := strings.TrimSpace(strings.Join(args, " "))
		text, want, _ := strings.Cut(text, " : ")
		return expect(p.rt.Grant(p.session, []byte(text)), strings.TrimSpace(want))
	default:
		return p.stage(l.Words[0], args)
	}
}

// stage runs a stage of §11.1 or allow, and compares its refusal.
func (p *play) stage(name string, args []string) error {
	ids, want := cutWant(args)
	bare := len(ids) > 0 && ids[0] == "--bare"
	if bare {
		ids = ids[1:]
	}
	if len(ids) == 0 {
		return errors.New("names no pack")
	}
	var err *protocol.Error
	switch name {
	case "install":
		err = p.rt.Install(p.session, p.paths(ids), !bare)
	case "activate":
		err = p.rt.Activate(p.session, ids)
	case "deactivate":
		err = p.rt.Deactivate(p.session, ids)
	case "connect":
		err = p.rt.Connect(p.session, ids[0])
	case "disconnect":
		err = p.rt.Disconnect(p.session, ids[0])
	case "uninstall":
		err = p.rt.Uninstall(p.session, ids[0])
	case "allow":
		err = p.rt.Allow(p.session, ids)
	default:
		return errors.New("is no command of a script")
	}
	return expect(err, strings.Join(want, " "))
}

// cutWant splits "a b : CODE".
func cutWant(args []string) (before, after []string) {
	if i := slices.Index(args, ":"); i >= 0 {
		return args[:i], args[i+1:]
	}
	return args, nil
}

func expect(err *protocol.Error, want string) error {
	got := ""
	if err != nil {
		got = string(err.Code)
	}
	switch {
	case got == want:
		return nil
	case got == "":
		return fmt.Errorf("was done; want %s", want)
	case want == "":
		return fmt.Errorf("was refused: %w", err)
	default:
		return fmt.Errorf("was refused with %s; want %s", got, want)
	}
}

func (p *play) become(what string, args []string) error {
	if len(args) != 1 {
		return errors.New("takes one word")
	}
	switch what {
	case "as":
		p.session.Principal = protocol.Principal(args[0])
	case "session":
		p.session.ID = args[0]
	case "project":
		p.session.Project = strings.TrimPrefix(args[0], "-")
	}
	return nil
}

func (p *play) lint(args []string) error {
	ids, want := cutWant(args)
	issues, refusal := p.rt.Lint(p.paths(ids))
	if refusal != nil {
		return fmt.Errorf("lint was refused: %s", refusal.Message)
	}
	var errs, all []string
	for _, i := range issues {
		all = append(all, string(i.Code))
		if i.Severity == protocol.SeverityError {
			errs = append(errs, string(i.Code))
		}
		if i.File == "" && i.Code != "pack.unreadable" || i.Line < 1 || i.Column < 1 || i.Message == "" || i.Section == "" {
			return fmt.Errorf("%s has no place, section or message", i.Code)
		}
	}
	got := errs
	if slices.Equal(want, []string{"clean"}) {
		want, got = nil, all
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		return fmt.Errorf("found %q; want %q", got, want)
	}
	return nil
}

// exec sends an envelope and compares the Result (§6.2): exactly its members, the code and the step; of the
// details only those that the wanted answer names.
func (p *play) exec(how string, args []string) error {
	if len(args) != 2 {
		return errors.New("takes an envelope and the wanted answer")
	}
	envelope, ok := p.vector.file(args[0])
	if !ok {
		return fmt.Errorf("the vector has no file %s", args[0])
	}
	envelope = bytes.ReplaceAll(bytes.TrimRight(envelope, "\n"), []byte("$approval"), []byte(p.asked))
	var r protocol.Result
	if how == "plan" {
		r = p.rt.Plan(p.ctx, p.session, envelope)
	} else {
		r = p.rt.Exec(p.ctx, p.session, envelope)
	}
	if err := wellFormed(r); err != nil {
		return err
	}
	if r.Error != nil {
		if id, ok := r.Error.Details["approval_id"].(string); ok {
			p.asked = id
		}
	}
	got, err := resultNode(r)
	if err != nil {
		return err
	}
	err = p.compare(args[1], got, how == "exec")
	if err != nil && r.Error != nil {
		return fmt.Errorf("%w (%s)", err, r.Error.Message)
	}
	return err
}

// decide is a person's act on what was asked last (§15.2).
func (p *play) decide(how string, args []string) error {
	before, want := cutWant(args)
	if len(before) > 0 || p.asked == "" {
		return errors.New("takes no id, and nothing was asked")
	}
	act := p.rt.Approve
	if how == "reject" {
		act = p.rt.Reject
	}
	return expect(act(p.session, p.asked), strings.Join(want, " "))
}

// command runs a command line or a stream, and compares what it wrote and how it ended.
func (p *play) command(how string, args []string) error {
	if len(args) != 3 {
		return errors.New("takes words or envelopes, the wanted answer, and the exit code")
	}
	text, ok := p.vector.file(args[0])
	if !ok {
		return fmt.Errorf("the vector has no file %s", args[0])
	}
	argv, stdin := []string{"exec", "--stream"}, text
	if how == "words" {
		argv, stdin = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
	}
	stdout, exit := p.rt.Command(p.session, argv, stdin)
	if fmt.Sprint(exit) != args[2] {
		return fmt.Errorf("exit %d; want %s: %s", exit, args[2], stdout)
	}
	var answers []*jsondoc.Node
	for line := range bytes.Lines(stdout) {
		n, err := parseJSON(line)
		if err != nil {
			return err
		}
		answers = append(answers, wordless(n))
	}
	if how == "stream" {
		return p.compare(args[1], jsondoc.Arr(answers...), true)
	}
	if len(answers) != 1 {
		return fmt.Errorf("gave %d lines; want one", len(answers))
	}
	return p.compare(args[1], answers[0], true)
}

func (p *play) availability(args []string) error {
	if len(args) == 0 {
		return errors.New("takes the wanted answer")
	}
	src, failure := p.rt.Availability(p.session, args[1:])
	if failure != nil {
		return failure
	}
	got, err := parseJSON(src)
	if err != nil {
		return err
	}
	return p.compare(args[0], got, false)
}

// ran compares what the doors did since the last time.
func (p *play) ran(args []string) error {
	now := p.rt.Trace()
	did := map[string]int{
		"minted": now.Minted - p.seen.Minted, "spawned": now.Spawned - p.seen.Spawned,
		"intents": now.Intents - p.seen.Intents, "outcomes": now.Outcomes - p.seen.Outcomes,
		"denials": now.Denials - p.seen.Denials,
	}
	p.seen = now
	if slices.Equal(args, []string{"nothing"}) {
		args = []string{"minted=0", "spawned=0", "intents=0", "outcomes=0"}
	}
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		want, err := strconv.Atoi(value)
		got, ok := did[name]
		if err != nil || !ok {
			return fmt.Errorf("%s is nothing that is counted", a)
		}
		if got != want {
			return fmt.Errorf("%s %d; want %d", name, got, want)
		}
	}
	return nil
}

// untouched: the working directory is empty, and so is the home of the user but for the runtime's own directory
// (§15.4), so that no host's configuration was written.
func (p *play) untouched() error {
	own := filepath.Join(p.dir, "user", ".config", "hcpx")
	for _, dir := range []string{"work", "user"} {
		err := filepath.WalkDir(filepath.Join(p.dir, dir), func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case name == own:
				return fs.SkipDir
			case !d.IsDir():
				return fmt.Errorf("%s was written", strings.TrimPrefix(name, p.dir))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *play) paths(ids []string) []string {
	dirs := make([]string, len(ids))
	for i, id := range ids {
		dirs[i] = filepath.Join(p.packs, id)
	}
	return dirs
}
