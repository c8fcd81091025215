package sandbox

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Aide is another program of this runtime that works for this process over its standard streams: no command of a pack,
// and so without a Spec. It begins with an empty environment, in a process group of its own and in the root directory,
// and confines itself (Seclude). It stays in the session of this process, which tells it from what a native run left. On Linux it dies with this process at once; it ends with its input everywhere.
type Aide struct {
	In  io.Writer
	Out io.Reader

	cmd  *exec.Cmd
	own  [2]*os.File // the ends of In and Out
	end  sync.Once
	over chan struct{} // closed when it was buried
	said tail
	exit int // once over is closed
}

// StartAide starts a program by its absolute path with one word.
func StartAide(path, word string) (*Aide, error) {
	input, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	out, output, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer output.Close()
	a := &Aide{In: in, Out: out, own: [2]*os.File{in, out}, over: make(chan struct{})}
	a.cmd = &exec.Cmd{Path: path, Args: []string{path, word}, Env: []string{}, Dir: string(os.PathSeparator), SysProcAttr: aideAttr(),
		Stdin: input, Stdout: output, Stderr: &a.said, WaitDelay: time.Second}
	begun := make(chan error)
	go a.tend(begun)
	if err := <-begun; err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	return a, nil
}

// tend starts the program and buries it. The kernel ends it with the thread that started it, so that thread stays.
func (a *Aide) tend(begun chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := a.cmd.Start()
	begun <- err
	if err != nil {
		return
	}
	_ = a.cmd.Wait() // how it ended stands in ProcessState
	a.exit, _ = exitOf(a.cmd.ProcessState)
	close(a.over)
}

// Over says whether it has ended.
func (a *Aide) Over() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

// End ends it at once and gives its streams back. It may be called again.
func (a *Aide) End() {
	a.end.Do(func() {
		_ = a.cmd.Process.Kill() // it fails only when it has ended
		for _, f := range a.own {
			_ = f.Close() // pipes: nothing is kept back
		}
	})
}

// Wait waits until it is gone, and gives its exit code, -1 after a signal, and the end of what it said to its standard
// error.
func (a *Aide) Wait() (exit int, last []byte) {
	<-a.over
	return a.exit, a.said.last()
}
