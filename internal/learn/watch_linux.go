//go:build amd64 || arm64

package learn

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/egress"
	"hcpx/internal/procs"
)

// namePort is where name servers answer.
const namePort = 53

// A script's interpreter may be a script, a few times; a run of many starts is told of up to here.
const (
	maxInterpreters = 5
	maxPrograms     = 1 << 14
)

// patience is how long what the program left running may go on, and how long a stop may take.
const patience = 2 * time.Second

// Watch runs a program with all rights of the caller and says what it did. A cancelled context ends it and all that it
// started; so does the end of its first process, after a moment.
func Watch(ctx context.Context, t Trial) (*Seen, error) { return watch(ctx, t, namePort) }

func watch(ctx context.Context, t Trial, names uint16) (seen *Seen, err error) {
	if t.Ready != nil {
		<-t.Ready
	}
	tree, err := adopt()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.settle()) }()
	cmd, listener, err := begin(t)
	if err != nil {
		return nil, err
	}
	w := &watcher{listener: listener, calls: watchedCalls(), names: names, files: map[string]int{}, begun: map[string]bool{}, seen: &Seen{}}
	over := make(chan struct{})
	go func() { defer close(over); w.serve() }()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails when it has just ended
		select {
		case err = <-ended:
		case <-time.After(patience):
			err = errors.Join(cmd.Process.Kill(), <-ended)
		}
	}
	select {
	case <-over:
	case <-time.After(patience):
		w.left = tree.end()
		<-over
	}
	w.seen.Left = w.left
	for i := range w.seen.Files {
		_, absent := os.Lstat(w.seen.Files[i].Path)
		w.seen.Files[i].Gone = absent != nil
	}
	w.seen.Exit, w.seen.Signal = outcome(cmd.ProcessState)
	var failed *exec.ExitError
	if errors.As(err, &failed) || errors.Is(err, exec.ErrWaitDelay) {
		err = nil // how it ended is no fault of the watching
	}
	return w.seen, errors.Join(err, ctx.Err(), unix.Close(listener))
}

// begin starts the stage and takes its listener.
func begin(t Trial) (*exec.Cmd, int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "stage")
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: append([]string{stageName, t.Path}, t.Argv...), Env: t.Env, Dir: t.Dir,
		Stdin: t.In, Stdout: t.Out, Stderr: t.Out, ExtraFiles: []*os.File{theirs}, WaitDelay: patience}
	err = cmd.Start()
	if again := theirs.Close(); err == nil {
		err = again
	}
	if err != nil {
		return nil, -1, errors.Join(err, unix.Close(pair[0]))
	}
	listener, err := takeListener(pair[0])
	if err = errors.Join(err, unix.Close(pair[0])); err != nil {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		return nil, -1, err
	}
	return cmd, listener, nil
}

func outcome(s *os.ProcessState) (int, string) {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -1, unix.SignalName(status.Signal())
	}
	return s.ExitCode(), ""
}

// watcher keeps what it is told of. One goroutine has it.
type watcher struct {
	listener int
	calls    map[int32]call
	names    uint16
	files    map[string]int // path → its place in seen.Files
	begun    map[string]bool
	left     int
	seen     *Seen
}

// serve looks at each call and lets it go on, until no process is left that has the filter.
func (w *watcher) serve() {
	poll := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents != 0 {
				return
			}
			continue
		}
		var n procs.Notice
		if procs.Control(w.listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
			continue // it was killed meanwhile
		}
		w.look(&n)
		r := procs.Reply{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_ = procs.Control(w.listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // fails only when the caller is dead
	}
}

func (w *watcher) look(n *procs.Notice) {
	c, by := w.calls[n.NR], caller{int(n.PID)}
	switch c.kind {
	case connects:
		w.connect(by, n)
	case hears:
		w.hear(by, int(int32(n.Args[0])))
	case listens:
		w.listen(by, int(int32(n.Args[0])))
	default:
		path := w.path(by, n, c.dir, c.path)
		if path == "" {
			return
		}
		w.change(by, n, c, path)
	}
}

// change keeps what a call with a path does.
func (w *watcher) change(by caller, n *procs.Notice, c call, path string) {
	switch c.kind {
	case opens:
		w.open(path, n.Args[c.flags])
	case opensHow:
		if how := by.bytes(n.Args[c.flags], 8); len(how) == 8 {
			w.open(path, binary.NativeEndian.Uint64(how))
		}
	case creates:
		w.open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_TRUNC)
	case starts:
		w.start(path, by.words(n.Args[c.flags]))
	case truncates:
		w.file(path, act{write: true})
	case makes, makesDir:
		w.file(path, act{write: true, entry: true, makes: true, fresh: true, bare: c.kind == makesDir})
	case removes:
		w.remove(path, c.flags == 0 || n.Args[c.flags]&unix.AT_REMOVEDIR != 0)
	case unlinks:
		w.remove(path, false)
	case moves, links:
		second := w.path(by, n, c.dir2, c.path2)
		if c.kind == moves && !w.file(path, act{write: true, entry: true}) || second == "" {
			return
		}
		w.file(second, act{write: true, entry: true, makes: true, fresh: c.kind == links})
	}
}

// path reads a path argument; "" when it can't be told.
func (w *watcher) path(by caller, n *procs.Notice, dir, at int) string {
	name, ok := by.text(n.Args[at])
	if !ok {
		w.seen.Unread++
		return ""
	}
	fd := int32(unix.AT_FDCWD)
	if dir != atCwd {
		fd = int32(n.Args[dir])
	}
	return by.absolute(fd, name)
}

func (w *watcher) open(path string, flags uint64) {
	if flags&unix.O_PATH != 0 {
		return // it opens nothing
	}
	w.file(path, act{
		read: flags&unix.O_WRONLY == 0, write: flags&(unix.O_WRONLY|unix.O_RDWR|unix.O_TRUNC|unix.O_CREAT) != 0,
		makes: flags&unix.O_CREAT != 0, fresh: flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL,
	})
}

// remove keeps what is removed. A directory that still holds something stays.
func (w *watcher) remove(path string, dir bool) {
	info, err := os.Lstat(path)
	if err != nil || info.IsDir() != dir || dir && !empty(path) {
		return
	}
	w.file(path, act{write: true, entry: true, bare: dir})
}

func empty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

// act is what a call does with a path.
type act struct {
	read, write bool
	entry       bool // it acts on the name, not on what a link of that name leads to
	makes       bool // what is not there; else it must be there
	fresh       bool // it must not be there
	bare        bool // a directory, and nothing in it
}

// file keeps a file that is there, or that is made. A call that the kernel refuses does nothing.
func (w *watcher) file(path string, a act) bool {
	f := File{Path: filepath.Clean(path), Read: a.read, Write: a.write, Bare: a.bare}
	if own(f.Path) {
		f.Real = f.Path // what a process is to itself is another thing here
	} else {
		info, err := os.Lstat(path)
		if err == nil && info.Mode()&os.ModeSymlink != 0 && a.read {
			info, err = os.Stat(path)
		}
		if err != nil && !a.makes || err == nil && a.fresh {
			return false
		}
		f.Made, f.Dir, f.Real = err != nil, err == nil && info.IsDir(), leads(path)
		if refused(path, f, a) {
			return false
		}
	}
	f.Read = f.Read && !f.Made
	at, known := w.files[f.Path]
	if !known {
		w.files[f.Path] = len(w.seen.Files)
		w.seen.Files = append(w.seen.Files, f)
		return true
	}
	old := &w.seen.Files[at]
	if f.Write {
		old.Bare = f.Bare && (old.Bare || !old.Write)
	}
	old.Read = old.Read || f.Read && !old.Made
	old.Write = old.Write || f.Write
	return true
}

// refused says whether the rights of the user don't allow the act.
func refused(path string, f File, a act) bool {
	switch {
	case a.entry || f.Made:
		path = strings.TrimRight(path, "/")
		return unix.Access(path[:strings.LastIndexByte(path, '/')+1], unix.W_OK) != nil
	case a.write:
		return unix.Access(f.Real, unix.W_OK) != nil
	}
	return unix.Access(f.Real, unix.R_OK) != nil
}

func (w *watcher) start(path string, argv []string) {
	for range maxInterpreters {
		p := Program{Path: filepath.Clean(path), Real: leads(path), Argv: argv}
		info, err := os.Stat(p.Real)
		if err != nil || !info.Mode().IsRegular() || unix.Access(p.Real, unix.X_OK) != nil {
			return // a look along PATH
		}
		key := p.Path + "\x00" + strings.Join(argv, "\x00")
		if w.begun[key] || len(w.begun) >= maxPrograms {
			return
		}
		w.begun[key] = true
		p.Head = firstLine(p.Real)
		w.seen.Programs = append(w.seen.Programs, p)
		words := strings.Fields(strings.TrimPrefix(p.Head, "#!"))
		if len(words) == 0 || !filepath.IsAbs(words[0]) {
			return
		}
		path, argv = words[0], words // the kernel starts it for the script, without a call
	}
}

func (w *watcher) connect(by caller, n *procs.Notice) {
	raw := by.bytes(n.Args[1], int(min(n.Args[2], 128)))
	to, path := address(raw)
	switch {
	case raw == nil:
		w.seen.Unread++
	case path != "":
		if _, err := os.Stat(path); (err == nil || path[0] == '@') && !slices.Contains(w.seen.Sockets, path) {
			w.seen.Sockets = append(w.seen.Sockets, path)
		}
	case !to.IsValid() || to.Port() == 0:
	case by.datagrams(int(int32(n.Args[0]))):
		if to.Port() != w.names && !slices.Contains(w.seen.Datagrams, to) {
			w.seen.Datagrams = append(w.seen.Datagrams, to)
		}
	default:
		if r := (Reached{to}); !slices.Contains(w.seen.Reached, r) {
			w.seen.Reached = append(w.seen.Reached, r)
		}
	}
}

// datagrams says whether a descriptor is a datagram socket.
func (c caller) datagrams(fd int) bool {
	own := c.socket(fd)
	if own < 0 {
		return false
	}
	defer unix.Close(own)
	kind, err := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_DGRAM
}

// hear looks at a datagram that the caller is about to receive, without taking it.
func (w *watcher) hear(by caller, fd int) {
	own := by.socket(fd)
	if own < 0 {
		return
	}
	defer unix.Close(own)
	if kind, err := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_DGRAM {
		return
	}
	buf := make([]byte, 4096)
	n, from, err := unix.Recvfrom(own, buf, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err != nil || !w.named(from) {
		return
	}
	name, at, ok := egress.ReadAnswer(buf[:n])
	a := Answer{name, at}
	if ok && !slices.ContainsFunc(w.seen.Answers, func(old Answer) bool { return old.Name == a.Name && slices.Equal(old.At, a.At) }) {
		w.seen.Answers = append(w.seen.Answers, a)
	}
}

// named says whether a name server speaks.
func (w *watcher) named(from unix.Sockaddr) bool {
	switch from := from.(type) {
	case *unix.SockaddrInet4:
		return from.Port == int(w.names)
	case *unix.SockaddrInet6:
		return from.Port == int(w.names)
	}
	return false
}

func (w *watcher) listen(by caller, fd int) {
	own := by.socket(fd)
	if own < 0 {
		return
	}
	defer unix.Close(own)
	domain, err := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && (domain == unix.AF_INET || domain == unix.AF_INET6) {
		w.seen.Listens = true
	}
}
