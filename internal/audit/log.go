package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// batch is how many entries that need not be durable may wait for the next fsync.
const batch = 64

const defaultSegmentBytes = 8 << 20

// Config names an audit.
type Config struct {
	Dir          string           // $HCP_HOME/audit
	KeyPath      string           // ${XDG_CONFIG_HOME:-~/.config}/hcpx/audit.key
	Now          func() time.Time // used by Append only
	SegmentBytes int64            // a segment that would grow past this is followed by the next; 0 = 8 MiB
	// Used says whether what the audit tells of was changed before, which it then has an entry of; nil says no.
	Used func() bool
	// Anchor is where each head is sent as well: AnchorNone (also ""), AnchorJournald or AnchorSyslog. Socket is where
	// that log listens; "" = the usual place.
	Anchor, Socket string
}

// lost says that an audit was here and is gone: no entry, where there must be one. An entry comes before its
// change, so the change is asked about first.
func (c Config) lost() bool { return c.Used != nil && c.Used() && unwritten(c.Dir) }

// FileLog is the Log on disk. It opens and creates nothing before the first Append, and may be used by
// several goroutines; other processes may append to the same files.
type FileLog struct {
	cfg    Config
	mu     sync.Mutex
	key    *key
	head   opened // audit/head, whose lock is the lock of the audit
	seg    opened // the segment written last
	segNo  int
	known  []byte  // the head's bytes as last checked or written by this process
	last   sealed  // what they say
	text   []byte  // the head's bytes as they are on disk, whatever they say
	anchor *anchor // nil: the heads are not anchored
}

// opened is an open file and which file that was.
type opened struct {
	*os.File
	info fs.FileInfo
}

func open(path string, flag int) (opened, error) {
	f, err := openFile(path, flag|os.O_CREATE, 0o600)
	if err != nil {
		return opened{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return opened{}, errors.Join(err, f.Close())
	}
	return opened{f, info}, nil
}

var _ Log = (*FileLog)(nil)

// Open names the log.
func Open(cfg Config) *FileLog {
	if cfg.SegmentBytes <= 0 {
		cfg.SegmentBytes = defaultSegmentBytes
	}
	return &FileLog{cfg: cfg}
}

// Close gives the files back. The log may be used again.
func (l *FileLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.anchor != nil {
		l.anchor.close()
	}
	return errors.Join(l.closeHead(), l.closeSegment())
}

func (l *FileLog) closeHead() (err error) {
	if l.head.File != nil {
		err = l.head.Close()
	}
	l.head, l.known = opened{}, nil
	return err
}

func (l *FileLog) closeSegment() (err error) {
	if l.seg.File != nil {
		err = l.seg.Close()
	}
	l.seg, l.segNo = opened{}, 0
	return err
}

// Append writes one entry and moves the head over it (§15.4). A durable one is on disk, entry and head,
// when Append returns; others are at the next durable one, when their segment ends, or after 64. The
// first of a segment is durable too, and with it the segment's name. What is synced is signed. On an
// error the entry does not count, and nothing may run.
func (l *FileLog) Append(e Entry, durable bool) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.acquire(); err != nil {
		return fmt.Errorf("the audit can't be written: %w", err)
	}
	defer func() { err = errors.Join(err, lock(l.head.File, free)) }()
	end, err := l.end()
	if err == nil {
		err = l.write(end, &e, durable)
	}
	if err != nil {
		return fmt.Errorf("the audit can't be written: %w", err)
	}
	return nil
}

// acquire opens the head file and locks it. A head file that was replaced meanwhile is opened again.
func (l *FileLog) acquire() error {
	path := filepath.Join(l.cfg.Dir, "head")
	for {
		if l.head.File == nil {
			if err := l.open(path); err != nil {
				return err
			}
		}
		if err := lock(l.head.File, exclusive); err != nil {
			return err
		}
		if named, err := os.Stat(path); err == nil && os.SameFile(l.head.info, named) {
			return nil
		}
		if err := l.closeHead(); err != nil {
			return err
		}
	}
}

func (l *FileLog) open(path string) (err error) {
	if l.key == nil {
		if l.key, err = makeKey(l.cfg.KeyPath); err != nil {
			return err
		}
	}
	if l.anchor == nil {
		if l.anchor, err = anchorOf(l.cfg); err != nil {
			return err
		}
	}
	l.head, err = open(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDir(l.cfg.Dir); err != nil {
			return err
		}
		l.head, err = open(path, os.O_RDWR)
	}
	return err
}

// position is where the next entry goes.
type position struct {
	Head
	adopted uint64
}

// end finds where to continue: at the head, if the files end where it says; else what lies there is
// looked at, and what does not fit is recorded.
func (l *FileLog) end() (position, error) {
	text, err := readStart(l.head.File, headSize+1)
	if err != nil {
		return position{}, err
	}
	l.text = text
	if !bytes.Equal(text, l.known) || len(text) == 0 {
		l.known = nil
		l.last, err = l.check(text)
		if errors.Is(err, ErrHead) {
			return l.recover(nil, text)
		}
		if err != nil {
			return position{}, err
		}
		if len(text) > 0 {
			l.known = text
		}
	}
	if l.fits(l.last.now) {
		return position{Head: l.last.now}, nil
	}
	return l.recover(&l.last.now, text)
}

// check decodes a head; for an audit that never was it makes the first one, so that from the first entry
// on a missing head is a sign of something.
func (l *FileLog) check(text []byte) (sealed, error) {
	if len(text) > 0 {
		return unseal(text, l.key)
	}
	segs, err := segments(l.cfg.Dir)
	if err != nil || len(segs) > 0 || l.cfg.lost() {
		return sealed{}, errors.Join(err, ErrHead)
	}
	first := Head{Hash: zeroHash, Segment: 1, Time: l.now()}
	if err := l.move(first, true); err != nil {
		return sealed{}, errors.Join(err, l.head.Truncate(0))
	}
	return l.last, syncPath(l.cfg.Dir)
}

func (l *FileLog) now() string { return l.cfg.Now().UTC().Format(time.RFC3339Nano) }

// fits says whether the files end exactly where the head says.
func (l *FileLog) fits(h Head) bool {
	info, err := os.Stat(segmentPath(l.cfg.Dir, h.Segment))
	if errors.Is(err, os.ErrNotExist) {
		l.segNo = 0
		return h.Size == 0
	}
	if err != nil || info.Size() != h.Size {
		return false
	}
	if l.segNo == h.Segment && !os.SameFile(l.seg.info, info) {
		l.segNo = 0 // replaced by another file: open it again
	}
	_, err = os.Lstat(segmentPath(l.cfg.Dir, h.Segment+1))
	return errors.Is(err, os.ErrNotExist)
}

// write adds one entry at a position, with one write(2). Whatever fails, the segment is cut back, so
// that an entry whose Append failed is not in the chain.
func (l *FileLog) write(at position, e *Entry, durable bool) error {
	e.Seq, e.Time, e.Prev, e.Adopted = at.Seq+1, l.now(), at.Hash, at.adopted
	text, err := encodeEntry(e, l.key)
	if err != nil {
		return err
	}
	next := at.Head
	fresh := next.Size == 0
	if !fresh && next.Size+int64(len(text)) > l.cfg.SegmentBytes {
		if err := l.finish(next.Segment); err != nil {
			return err
		}
		next.Segment, next.Size, fresh = next.Segment+1, 0, true
	}
	if err := l.use(next.Segment); err != nil {
		return err
	}
	start := next.Size
	next.Seq, next.Size, next.Time = e.Seq, start+int64(len(text)), e.Time
	next.Hash = line{raw: text[:len(text)-1]}.hash()
	durable = durable || fresh || next.Seq-next.Synced >= batch
	if durable {
		next.Synced = next.Seq
	}
	if err := l.put(text, durable, fresh); err != nil {
		return errors.Join(err, l.seg.Truncate(start))
	}
	if err := l.move(next, durable); err != nil {
		return errors.Join(err, l.seg.Truncate(start))
	}
	return nil
}

func (l *FileLog) put(text []byte, durable, fresh bool) error {
	if _, err := l.seg.Write(text); err != nil {
		return err
	}
	if !durable {
		return nil
	}
	if err := l.seg.Sync(); err != nil {
		return err
	}
	if fresh {
		return syncPath(l.cfg.Dir)
	}
	return nil
}

// move writes the head in place: one short write that replaces all of it. One that is synced is signed;
// the others carry the last signature on. If it fails, or cannot be anchored where it must be, the head
// before it is put back, since its entry is taken back too.
func (l *FileLog) move(h Head, durable bool) (err error) {
	next := sealed{now: h, signed: l.last.signed}
	if durable {
		if next.signed, err = l.key.sign(h); err != nil {
			return err
		}
	}
	text, err := next.seal(l.key)
	if err != nil {
		return err
	}
	l.known = nil
	_, err = l.head.WriteAt(text, 0)
	if err == nil && durable {
		err = l.head.Sync()
	}
	if err == nil && l.anchor != nil && h.Seq > 0 {
		err = l.anchor.hold(h, l.key, l.cfg.Now())
	}
	if err != nil {
		return errors.Join(err, l.putBack(durable))
	}
	l.known, l.text, l.last = text, text, next
	return nil
}

// putBack makes the head again what it was.
func (l *FileLog) putBack(durable bool) error {
	_, err := l.head.WriteAt(l.text, 0)
	err = errors.Join(err, l.head.Truncate(int64(len(l.text))))
	if durable {
		err = errors.Join(err, l.head.Sync())
	}
	return err
}

// use opens the segment for appending.
func (l *FileLog) use(no int) error {
	if l.segNo == no {
		return nil
	}
	if err := l.closeSegment(); err != nil {
		return err
	}
	f, err := open(segmentPath(l.cfg.Dir, no), os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	l.seg, l.segNo = f, no
	return nil
}

// finish makes a segment durable before the next one begins.
func (l *FileLog) finish(no int) error {
	if err := l.use(no); err != nil {
		return err
	}
	return errors.Join(l.seg.Sync(), syncPath(l.cfg.Dir))
}
