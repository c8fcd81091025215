package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"hcpx/internal/protocol"
)

// nativeDegraded is everything that a native run does not have; its report says so (§10.3). Survivors stand in
// it because nothing keeps a program from having a service of the machine, or another user, run something.
func nativeDegraded() []string {
	degraded := []string{"system-calls", "files", "programs", "descriptors", "abstract-sockets", "signals", "metadata", "privileges",
		"runtime", "launcher", "setid-files", "network-none", "network-full", "network-hosts", "survivors"}
	return append(degraded, notNative()...)
}

// checkNative is what still holds without a sandbox: the recorded programs and the directories must be there.
func checkNative(spec *Spec) *protocol.Error {
	for _, p := range append([]Program{spec.Program}, spec.Uses...) {
		info, err := os.Stat(p.Path)
		if err != nil || !filepath.IsAbs(p.Path) || !info.Mode().IsRegular() {
			return protocol.Fail(protocol.BinNotAllowed, fmt.Sprintf("The program %q cannot be used: %s is no file.", p.Name, p.Path)).
				With("name", p.Name).With("path", p.Path).WithHint("hcpx allow " + protocol.Words(p.Name))
		}
	}
	for _, l := range spec.Links {
		if l.HomeRel != "" && !filepath.IsLocal(l.HomeRel) {
			return protocol.Fail(protocol.JailEscape, fmt.Sprintf("%s is no place below the private home directory.", l.HomeRel)).With("path", l.HomeRel)
		}
	}
	if spec.Dir == "" {
		return nil
	}
	if info, err := os.Stat(spec.Dir); err != nil || !info.IsDir() {
		return protocol.Fail(protocol.JailEscape, fmt.Sprintf("The working directory %s is not there.", spec.Dir)).With("path", spec.Dir)
	}
	return nil
}

// nativeBox is a run without a sandbox: a scrubbed environment, a private HOME and TMPDIR, time and output
// limits, and a tree kill by descent and adoption. Both manifest and operator asked for it (§10.3).
type nativeBox struct {
	system *System
	spec   *Spec
	root   string
	lock   *os.File // of root; nil where there is none
	ran    atomic.Bool
	// within starts the command inside something else, where the system has a program for that; confined is the
	// report then.
	within   []string
	confined Report
}

func (s *System) prepareNative(spec *Spec) (Box, *protocol.Error) {
	if err := checkNative(spec); err != nil {
		return nil, err
	}
	root, lock, err := nativePrivate(s.options.Scratch, spec)
	if err != nil {
		return nil, protocol.Fail(protocol.InternalError, "The private directory could not be made: "+err.Error()+".")
	}
	return &nativeBox{system: s, spec: spec, root: root, lock: lock}, nil
}

func nativePrivate(scratch string, spec *Spec) (string, *os.File, error) {
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", nil, err
	}
	root, lock, err := ownRoot(scratch)
	if err != nil {
		return "", nil, err
	}
	sweep(scratch, root)
	for _, part := range []string{homePart, tempPart, binPart} {
		err = errors.Join(err, os.Mkdir(filepath.Join(root, part), 0o700))
	}
	for _, p := range append([]Program{spec.Program}, spec.Uses...) {
		if link := os.Symlink(p.Path, filepath.Join(root, binPart, p.Name)); !errors.Is(link, os.ErrExist) {
			err = errors.Join(err, link)
		}
	}
	err = errors.Join(err, linkReads(filepath.Join(root, homePart), spec.Links), give(filepath.Join(root, filePart), spec.Files))
	if err != nil {
		err = errors.Join(err, os.RemoveAll(root))
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return "", nil, err
	}
	return root, lock, nil
}

// linkReads puts the declared reads under ~ at their place in a private HOME (§10.2).
func linkReads(home string, links []Link) error {
	for _, l := range links {
		if l.HomeRel == "" {
			continue
		}
		at := filepath.Join(home, l.HomeRel)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(l.Target, at); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Close implements Box.
func (b *nativeBox) Close() error {
	err := removeAll(b.root)
	if b.lock != nil {
		err = errors.Join(err, b.lock.Close())
		b.lock = nil
	}
	return err
}

// removeAll removes a tree whose directories may have lost their permissions, and which something that is
// still alive may change meanwhile: no step follows a link out of the directory that the tree lies in.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	err = fs.WalkDir(dir.FS(), filepath.Base(path), func(at string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return dir.Chmod(at, 0o700)
		}
		return err
	})
	if again := os.RemoveAll(path); again != nil {
		return errors.Join(again, err)
	}
	return nil
}

// Run implements Box.
func (b *nativeBox) Run(ctx context.Context) (*Outcome, *protocol.Error) {
	if b.ran.Swap(true) {
		return nil, ranAlready()
	}
	done, ok := b.system.turn(ctx)
	if !ok {
		return nil, canceledBefore()
	}
	defer done()
	limits := b.spec.Limits.filled()
	argv := append([]string{b.spec.Program.Name}, b.spec.Args...)
	cmd := &exec.Cmd{
		Path: b.spec.Program.Path, Args: argv,
		Env: b.system.Environ(b.spec, b.root), Dir: b.spec.Dir, SysProcAttr: ownGroup(), WaitDelay: drainTime,
	}
	if cmd.Dir == "" {
		cmd.Dir = filepath.Join(b.root, homePart)
	}
	if len(b.within) > 0 {
		argv[0] = filepath.Join(b.root, binPart, b.spec.Program.Name)
		cmd.Path, cmd.Args = b.within[0], append(slices.Clone(b.within), argv...)
	}
	if len(b.spec.Stdin) > 0 {
		cmd.Stdin = bytes.NewReader(b.spec.Stdin)
	}
	over := make(chan struct{}, 1)
	out, errs := &capture{cap: limits.Output}, &tail{}
	cmd.Stdout, cmd.Stderr = &overflow{out, over}, errs
	begin := b.system.options.Now()
	tree, err := b.system.adopted.start(cmd, b.root)
	if err != nil {
		return nil, protocol.Fail(protocol.BinNotAllowed, fmt.Sprintf("%q could not be started: %v.", b.spec.Program.Name, err)).
			With("name", b.spec.Program.Name).With("path", b.spec.Program.Path)
	}
	o := &Outcome{}
	defer tree.release()
	o.await(ctx, nativeWait{cmd: cmd, tree: tree, over: over, limits: limits, now: b.system.options.Now})
	o.Report = b.report(o.Report)
	o.Stdout, o.Overflow = out.kept, out.over
	o.Stderr, o.StderrSize = errs.last(), errs.size
	o.Exit, o.Signal = exitOf(cmd.ProcessState)
	o.Duration = b.system.options.Now().Sub(begin)
	return o, nil
}

func (b *nativeBox) report(kill Report) Report {
	r := Report{Backend: "native", Network: "full", Degraded: nativeDegraded()}
	if len(b.within) > 0 {
		r = b.confined
	}
	r.Killed, r.Left = kill.Killed, kill.Left
	return r
}

func ranAlready() *protocol.Error {
	return protocol.Fail(protocol.InternalError, "A prepared command can be run only once.")
}

func canceledBefore() *protocol.Error {
	return protocol.Fail(protocol.Canceled, "The run was cancelled before it began.")
}

// drainTime bounds how long output is read once the direct child has ended, and how long the dead are waited for.
const drainTime = time.Second

// clock is the time source of a run.
type clock func() time.Time

// nativeWait is what a native run is waited for with.
type nativeWait struct {
	cmd    *exec.Cmd
	tree   nativeTree
	over   chan struct{}
	limits Limits
	now    clock
}

// await ends the run by itself, at its limit, at too much output, or when the caller cancels (§6.9).
func (o *Outcome) await(ctx context.Context, w nativeWait) {
	// What the child leaves holds the pipes open, so it must die before Wait can return: Wait is told by
	// WaitDelay, and left-overs are ended then.
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.cmd.Wait() // how it ended stands in ProcessState
	}()
	wall := time.NewTimer(w.limits.Wall)
	defer wall.Stop()
	select {
	case <-done:
	case <-w.over:
	case <-wall.C:
		o.TimedOut = true
		w.grace(done)
	case <-ctx.Done():
		o.Canceled = true
		w.grace(done)
	}
	o.Report.Killed, o.Report.Left = w.tree.kill(w.now)
	<-done
}

// grace asks the tree to end and gives it the time for that.
func (w nativeWait) grace(done chan struct{}) {
	w.tree.ask()
	t := time.NewTimer(w.limits.Grace)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// overflow tells once that the output passed its cap.
type overflow struct {
	*capture
	told chan struct{}
}

var _ io.Writer = (*overflow)(nil)

func (w *overflow) Write(p []byte) (int, error) {
	n, err := w.capture.Write(p)
	if w.over {
		select {
		case w.told <- struct{}{}:
		default:
		}
	}
	return n, err
}
