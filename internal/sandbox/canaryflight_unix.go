//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
)

// canaryWall bounds the run of the canary's child, which needs a hundredth of it.
const canaryWall = 30 * time.Second

// What the supervisor and the process that is left behind share in the child's jail.
const (
	lingerLock = "lock"
	lingerStop = "stop"
)

// flight is one live test: the forbidden directory, a jail beside it, the run, and the look at both afterwards.
type flight struct {
	dir     string // Canary.Dir
	program string
	prepare func(*Spec) (Box, *protocol.Error) // the way that every command takes
	apart   bool                               // see bait

	work     string // of this test alone
	listener int
	mark     *[8]byte // a thing in this process's memory
}

// fly makes the test. An error says that it could not be made.
func (f *flight) fly(ctx context.Context) (got findings, refusal *protocol.Error) {
	f.listener, f.mark = -1, new([8]byte)
	defer runtime.KeepAlive(f.mark)
	err := f.stage()
	if err == nil {
		got, refusal, err = f.try(ctx)
	}
	if f.listener >= 0 {
		err = errors.Join(err, unix.Close(f.listener))
	}
	if f.work != "" {
		err = errors.Join(err, os.RemoveAll(f.work))
	}
	if err != nil && refusal == nil {
		refusal = noProof("The test of the sandbox could not be made: " + err.Error() + ".")
	}
	return got, refusal
}

// stage makes the two directories, and shows outside the sandbox that everything can be done.
func (f *flight) stage() error {
	err := ownDir(f.dir)
	if err != nil {
		return err
	}
	if f.work, err = os.MkdirTemp(f.dir, "test-"); err != nil {
		return err
	}
	if err := os.Mkdir(f.jail(), 0o700); err != nil {
		return err
	}
	for _, name := range []string{stageRead, lingerLock} {
		if err := os.WriteFile(filepath.Join(f.jail(), name), []byte(stageText), 0o600); err != nil {
			return err
		}
	}
	if f.listener, err = f.bait("outside").stage(); err != nil {
		return err
	}
	control := f.bait("control")
	listener, err := control.stage()
	if err != nil {
		return err
	}
	failed := control.controls()
	if err := unix.Close(listener); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("outside the sandbox these attempts fail too: %s", strings.Join(failed, ", "))
	}
	return nil
}

func (f *flight) jail() string { return filepath.Join(f.work, "jail") }

// bait is the directory name below work, with this process as the one to attack.
func (f *flight) bait(name string) bait {
	t := bait{dir: filepath.Join(f.work, name), pid: os.Getpid(), address: addressOf(f.mark), apart: f.apart}
	for _, other := range others() {
		if canExec(bait{other: other}) == nil && programID(other[0]) != programID(f.program) {
			t.other = other
			break
		}
	}
	if t.other == nil {
		t.other = []string{"/bin/true"} // its control fails
	}
	return t
}

// try runs the child and reads what it did.
func (f *flight) try(ctx context.Context) (got findings, refusal *protocol.Error, err error) {
	t := f.bait("outside")
	number := "shared"
	if t.apart {
		number = "apart"
	}
	box, refusal := f.prepare(&Spec{
		Program: Program{Name: CanaryName, Path: f.program},
		Args:    append([]string{"try", t.dir, strconv.Itoa(t.pid), strconv.FormatUint(uint64(t.address), 16), number, f.jail()}, t.other...),
		Write:   []string{f.jail()}, Dir: f.jail(), Network: Network{Mode: "none"},
		Limits: Limits{Wall: canaryWall, Grace: 100 * time.Millisecond, Output: 4096},
	})
	if refusal != nil && refusal.Code == protocol.SandboxUnavailable {
		return got, refusal, nil
	}
	if refusal != nil {
		return got, nil, errors.New(refusal.Message)
	}
	o, refusal := box.Run(ctx)
	if refusal != nil {
		err = errors.New(refusal.Message)
	} else {
		got, err = f.judge(t, o)
	}
	if again := box.Close(); again != nil {
		err = errors.Join(err, again)
	}
	return got, nil, err
}

// judge holds the child's report against the table, and the stage against what it was.
func (f *flight) judge(t bait, o *Outcome) (findings, error) {
	var got findings
	alive, err := f.survived()
	if err != nil {
		return got, err
	}
	if o.Exit != 0 || o.TimedOut || o.Canceled {
		return got, fmt.Errorf("its child ended with exit code %d %s: %s", o.Exit, o.Signal, strings.TrimSpace(string(o.Stderr)))
	}
	ends, err := readReport(string(o.Stdout))
	if err != nil {
		return got, err
	}
	traces, err := t.disturbed(f.listener)
	if err != nil {
		return got, err
	}
	if ends["inside"] != 0 {
		got.undecided = append(got.undecided, "inside")
	}
	for _, a := range attempts() {
		switch end := ends[a.name]; {
		case end == 0 || slices.Contains(traces, a.name):
			got.worked = append(got.worked, a.name)
		case end < 0 || !slices.Contains(a.refusals, unix.Errno(end)):
			got.undecided = append(got.undecided, a.name)
		}
	}
	switch {
	case alive:
		got.worked = append(got.worked, "survive")
	case ends["linger"] != 0:
		got.undecided = append(got.undecided, "survive")
	}
	return got, nil
}

// survived says whether the process that was left behind holds its lock, and ends it then.
func (f *flight) survived() (bool, error) {
	fd, err := unix.Open(filepath.Join(f.jail(), lingerLock), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return false, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		if err := os.WriteFile(filepath.Join(f.jail(), lingerStop), nil, 0o600); err != nil {
			return true, err
		}
		return true, unix.Flock(fd, unix.LOCK_EX) // it ends within its next nap
	default:
		return false, err
	}
}

// readReport reads the child's report: one line for each attempt, in order, and nothing else.
func readReport(text string) (map[string]int, error) {
	names := []string{"inside"}
	for _, a := range attempts() {
		names = append(names, a.name)
	}
	names = append(names, "linger")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(names) || !strings.HasSuffix(text, "\n") {
		return nil, errors.New("its child gave no whole report; does this program begin with sandbox.Inner?")
	}
	ends := make(map[string]int, len(names))
	for i, name := range names {
		got, number, _ := strings.Cut(lines[i], " ")
		end, err := strconv.Atoi(number)
		if got != name || err != nil {
			return nil, errors.New("its child's report cannot be read")
		}
		ends[name] = end
	}
	return ends, nil
}

// ownDir makes a directory of this user alone, or holds one to that.
func ownDir(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("a directory of the sandbox is not absolute: %q", path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o077 != 0 || int(st.Uid) != unix.Geteuid() {
		return fmt.Errorf("%s must be a directory of yours with mode 0700", path)
	}
	return nil
}

// holdsProof reads a proof: a file of this user that nobody else can write, and nothing but the very text. It is
// never followed through a link, and never waited for.
func holdsProof(path string, key []byte) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&(unix.S_IFMT|0o7777) != unix.S_IFREG|0o600 || int(st.Uid) != unix.Geteuid() || st.Size != int64(len(key)) {
		return false
	}
	text := make([]byte, len(key)+1)
	n, err := unix.Pread(fd, text, 0)
	return err == nil && string(text[:n]) == string(key)
}

// keepProof writes a proof for later processes. Where it cannot be written, each of them runs the canary again.
func keepProof(path string, key []byte) {
	f, err := os.CreateTemp(filepath.Dir(path), "proof-")
	if err != nil {
		return
	}
	_, err = f.Write(key)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what stays is no proof, for its name is none
	}
}
