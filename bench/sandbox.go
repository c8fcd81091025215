package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"hcpx/internal/sandbox"
)

const spacedCase = "namespaces (kernels without Landlock)"

// sandboxTable times a sandboxed run inside this process against a bare fork and exec from a fresh locked thread.
func sandboxTable(s *setup) (table, error) {
	once := sandbox.New(sandbox.Options{Scratch: filepath.Join(s.dir, "scratch-once")})
	kept := sandbox.New(sandbox.Options{Scratch: filepath.Join(s.dir, "scratch-kept"), Keep: 1})
	// What a kernel without Landlock would do; this one does it too.
	spaced := sandbox.New(sandbox.Options{Scratch: filepath.Join(s.dir, "scratch-spaced"), Kernel: &sandbox.Kernel{
		System: runtime.GOOS + "/" + runtime.GOARCH, Supported: true, Filter: true, CloseRange: true, Openat2: true, Namespaces: true}, Accept: sandbox.Accepted()})
	confined := func(name string, system *sandbox.System) one {
		return one{name, func() error {
			box, refusal := system.Prepare(&sandbox.Spec{Program: sandbox.Program{Name: "hello", Path: s.hello}})
			if refusal != nil {
				return refusal
			}
			out, refusal := box.Run(context.Background())
			if refusal != nil {
				return refusal
			}
			if out.Exit != 0 || len(out.Stdout) == 0 {
				return fmt.Errorf("exit %d %s: %s%s", out.Exit, out.Signal, out.Stdout, out.Stderr)
			}
			return box.Close()
		}}
	}
	cases := []one{
		{"bare fork and exec, fresh thread", func() error { return bare(s.hello) }},
		confined("one-shot thread", once),
		confined("reused launcher", kept),
		confined(spacedCase, spaced),
	}
	return table{cases: append(cases, s.bwrap()...),
		goals: map[string]string{"one-shot thread": "≤ 1.35", "reused launcher": "≤ 1.10", spacedCase: "for comparison", bwrapCase: "for comparison"},
		third: bwrapCase, share: map[string]string{"one-shot thread": "≤ 0.35", "reused launcher": "≤ 0.35"}}, nil
}

// bare starts the program from a thread of its own and reads its output, as the sandbox does without its rules.
func bare(program string) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- start(program)
	}()
	return <-done
}

func start(program string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	p, err := os.StartProcess(program, []string{program}, &os.ProcAttr{Files: []*os.File{null, write, null}})
	_ = write.Close() // the child's copy stays
	if err != nil {
		return err
	}
	var buf [4096]byte
	for {
		if n, err := read.Read(buf[:]); n == 0 || err != nil {
			break
		}
	}
	state, err := p.Wait()
	if err != nil {
		return err
	}
	if !state.Success() {
		return fmt.Errorf("%s", state)
	}
	return nil
}
