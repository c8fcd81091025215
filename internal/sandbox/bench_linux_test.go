package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// tiny builds a static program that does nothing, the smallest thing to start.
func tiny(tb testing.TB) string {
	tb.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		tb.Skip("the go tool, which builds the program to start, is not in PATH")
	}
	dir := tb.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	program := filepath.Join(dir, "tiny")
	build := exec.Command(goTool, "build", "-o", program, source)
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	return program
}

// fresh runs f on a thread of its own that dies with it.
func fresh(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

func bare(b *testing.B, program string) {
	fresh(func() {
		cmd := exec.Cmd{Path: program, Args: []string{"tiny"}, Env: []string{}}
		if err := cmd.Run(); err != nil {
			b.Error(err)
		}
	})
}

func boxed(b *testing.B, s *System, spec *Spec) {
	box, refused := s.Prepare(spec)
	if refused != nil {
		b.Fatal(refused)
	}
	if _, refused := box.Run(context.Background()); refused != nil {
		b.Fatal(refused)
	}
	if err := box.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRatio measures all kinds in turn within each round and reports medians against the bare start:
// one-shot is to stay within 1.35, reused within 1.10.
func BenchmarkRatio(b *testing.B) {
	program := tiny(b)
	spec := &Spec{Program: Program{Name: "tiny", Path: program}}
	once := New(Options{Scratch: filepath.Join(b.TempDir(), "once")})
	kept := New(Options{Scratch: filepath.Join(b.TempDir(), "kept"), Keep: 1})
	defer kept.Close()
	kinds := []func(){
		func() { bare(b, program) },
		func() { boxed(b, once, spec) },
		func() { boxed(b, kept, spec) },
	}
	took := make([][]time.Duration, len(kinds))
	for _, kind := range kinds {
		kind()
	}
	for b.Loop() {
		for i, kind := range kinds {
			begin := time.Now()
			kind()
			took[i] = append(took[i], time.Since(begin))
		}
	}
	at := func(i int, part float64) float64 {
		slices.Sort(took[i])
		return float64(took[i][int(float64(len(took[i]))*part)])
	}
	b.ReportMetric(at(1, 0.5)/at(0, 0.5), "once/bare")
	b.ReportMetric(at(2, 0.5)/at(0, 0.5), "kept/bare")
	b.ReportMetric(at(1, 0.1)/at(0, 0.1), "once/bare-p10")
	b.ReportMetric(at(2, 0.1)/at(0, 0.1), "kept/bare-p10")
	b.ReportMetric(at(0, 0.5)/1000, "bare-us")
}

// BenchmarkCheck is step 8's share of the steps before a run: every path is looked at, nothing is made.
func BenchmarkCheck(b *testing.B) {
	land := b.TempDir()
	s := New(Options{Scratch: filepath.Join(b.TempDir(), "scratch")})
	spec := &Spec{Program: Program{Name: "true", Path: "/bin/true"}, Uses: []Program{{Name: "sh", Path: "/bin/sh"}},
		Read: []string{b.TempDir()}, Write: []string{land}, Dir: land}
	b.ReportAllocs()
	for b.Loop() {
		if refused := s.Check(spec); refused != nil {
			b.Fatal(refused)
		}
	}
}

// BenchmarkPrepare is what a one-shot run pays before its start, and its removal.
func BenchmarkPrepare(b *testing.B) {
	s := New(Options{Scratch: filepath.Join(b.TempDir(), "scratch")})
	spec := &Spec{Program: Program{Name: "true", Path: "/bin/true"}}
	b.ReportAllocs()
	for b.Loop() {
		box, refused := s.Prepare(spec)
		if refused != nil {
			b.Fatal(refused)
		}
		if err := box.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFilter is the one-time cost of assembling the filter.
func BenchmarkFilter(b *testing.B) {
	for b.Loop() {
		if _, err := compileFilter(amd64(), usual("none")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCanary measures what the canary costs a process that runs one command: with a proof, which is to stay
// below 30 microseconds, and without one.
func BenchmarkCanary(b *testing.B) {
	dir := b.TempDir()
	for _, kind := range []struct {
		name  string
		proof string
	}{{"proved", filepath.Join(dir, "canary", "passed")}, {"first", ""}} {
		b.Run(kind.name, func(b *testing.B) {
			ask := func() {
				s := New(Options{Scratch: filepath.Join(dir, "run"), Canary: &Canary{Dir: filepath.Join(dir, "canary"), Proof: kind.proof}})
				s.kernel()
				b.StartTimer()
				if refusal := s.proof.need(nil); refusal != nil {
					b.Fatal(refusal)
				}
				b.StopTimer()
			}
			b.StopTimer()
			ask()
			b.ResetTimer()
			for range b.N {
				ask()
			}
		})
	}
}
