package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxProblems bounds a report: a chain that is wrong in a million places is wrong.
const maxProblems = 100

// Report is what Verify found. OK is that there is no Problem; Notes are traces of crashes, and
// Interrupted the runs with an intent and no outcome, cut off or still running: neither is tampering.
type Report struct {
	OK          bool      `json:"ok"`
	Entries     uint64    `json:"entries"`
	Segments    uint64    `json:"segments"`
	Problems    []Problem `json:"problems"`
	Notes       []Problem `json:"notes"`
	Interrupted []string  `json:"interrupted"`
	Head        Head      `json:"head"`
}

// Problem is one thing that does not fit, with its place. Kind is malformed, changed, removed, reordered,
// tail-cut, segment-missing, head-missing, head-forged, key-missing, break, torn, unsigned or adopted.
type Problem struct {
	Kind    string `json:"kind"`
	Seq     uint64 `json:"seq,omitempty"`
	Segment int    `json:"segment,omitempty"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
}

// brief is what the chain needs of an entry.
type brief struct {
	Seq     uint64          `json:"seq"`
	Kind    string          `json:"kind"`
	ID      string          `json:"id"`
	Prev    string          `json:"prev"`
	Adopted uint64          `json:"adopted"`
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail"`
}

func parseBrief(raw []byte) (brief, bool) {
	var b brief
	err := json.Unmarshal(raw, &b)
	return b, err == nil && b.Seq > 0
}

// Verify reads the whole chain once, whatever its length, and checks each link, the order of the
// segments, the end and what was signed last (§15.4). It writes nothing; appends go on meanwhile, since it looks only at
// what was there when it began. An error means that the files could not be read.
func Verify(cfg Config) (Report, error) {
	v := verifier{prev: zeroHash, open: map[string]uint64{}}
	v.Problems, v.Notes, v.Interrupted = []Problem{}, []Problem{}, []string{}
	segs, err := v.snapshot(cfg)
	if err != nil {
		return Report{}, err
	}
	expect := 1
	for _, s := range segs {
		if s.no != expect {
			v.problem("segment-missing", line{segment: expect}, 0, fmt.Sprintf("Segment %d is missing; the next one is %d.", expect, s.no))
			v.lost = true
		}
		expect = s.no + 1
		err := walk(cfg.Dir, s, 0, v.take)
		if long := (*tooLong)(nil); errors.As(err, &long) {
			v.problem("malformed", line{segment: long.segment, no: long.no}, 0, "The line is longer than any entry.")
			v.lost = true
		} else if err != nil {
			return Report{}, err
		}
	}
	v.finish(expect)
	return v.Report, nil
}

type verifier struct {
	Report
	prev   string
	seq    uint64
	signed bool // Head is valid
	atHead bool // the entry that it names was seen
	mark   Head // the last end that was synced, and signed then
	atMark bool
	beyond uint64
	lost   bool // the link to the line before is known to be broken, and reported
	torn   *line
	open   map[string]uint64 // run → seq of its intent
}

// snapshot takes the head and the lengths of all segments at one moment, under the lock.
func (v *verifier) snapshot(cfg Config) ([]segment, error) {
	f, err := openFile(filepath.Join(cfg.Dir, "head"), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		segs, err := segments(cfg.Dir)
		if len(segs) > 0 {
			v.problem("head-missing", line{}, 0, "There are entries, and no head: the end of the chain can't be checked.")
		}
		return segs, err
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := lock(f, shared); err != nil {
		return nil, err
	}
	segs, err := segments(cfg.Dir)
	if err != nil {
		return nil, err
	}
	text, err := readStart(f, headSize+1)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 && len(segs) == 0 {
		return nil, nil // made, and not yet written
	}
	k, err := readKey(cfg.KeyPath)
	if errors.Is(err, ErrNoKey) {
		v.problem("key-missing", line{}, 0, "The key is missing: the end of the chain can't be checked.")
		return segs, nil
	}
	if err != nil {
		return nil, err
	}
	head, err := inspect(text, k)
	if errors.Is(err, ErrHead) {
		v.problem("head-forged", line{}, 0, "The head is not what the key signed.")
		return segs, nil
	}
	if err != nil {
		return nil, err
	}
	v.Head, v.mark = head.now, head.signed
	v.signed, v.atHead, v.atMark = true, v.Head.Seq == 0, v.mark.Seq == 0
	return segs, nil
}

func place(kind string, l line, seq uint64, message string) Problem {
	return Problem{Kind: kind, Seq: seq, Segment: l.segment, Line: l.no, Message: message}
}

func (v *verifier) problem(kind string, l line, seq uint64, message string) {
	if len(v.Problems) < maxProblems {
		v.Problems = append(v.Problems, place(kind, l, seq, message))
	}
}

func (v *verifier) note(kind string, l line, seq uint64, message string) {
	if len(v.Notes) < maxProblems {
		v.Notes = append(v.Notes, place(kind, l, seq, message))
	}
}

func (v *verifier) take(l line) error {
	v.Segments = max(v.Segments, uint64(l.segment))
	if l.torn {
		l.raw = append([]byte(nil), l.raw...)
		v.torn = &l
		return nil
	}
	b, ok := parseBrief(l.raw)
	hash := l.hash()
	v.tornBefore(b)
	if !ok {
		v.problem("malformed", l, v.seq+1, "The line is not an entry.")
		v.prev, v.lost = hash, true
		return nil
	}
	v.Entries++
	v.link(l, b)
	v.prev, v.seq = hash, b.Seq
	v.end(l, b, hash)
	v.run(l, b)
	return nil
}

// tornBefore judges a line without its end once it is known what follows.
func (v *verifier) tornBefore(next brief) {
	if v.torn == nil {
		return
	}
	var d breakDetail
	explained := next.Kind == Break && json.Unmarshal(next.Detail, &d) == nil && d.Reason == tornLine &&
		d.Segment == v.torn.segment && d.Offset == v.torn.offset && d.SHA256 == v.torn.hash()
	if explained {
		v.note("torn", *v.torn, 0, "The line was never finished: an append was cut off, and nothing ran by it.")
	} else {
		v.problem("torn", *v.torn, 0, "The line has no end, and no entry after it says why.")
	}
	v.torn = nil
}

// link checks an entry against the line before it.
func (v *verifier) link(l line, b brief) {
	next := v.seq + 1
	jump := b.Kind == Break && b.Seq > v.seq // a break may count on from entries that are missing
	switch {
	case v.lost:
		v.lost = false
	case b.Seq > next && !jump:
		v.problem("removed", l, b.Seq, fmt.Sprintf("Entries %d to %d are missing before this one.", next, b.Seq-1))
	case b.Seq < next:
		v.problem("reordered", l, b.Seq, fmt.Sprintf("Entry %d stands where %d belongs.", b.Seq, next))
	case b.Prev != v.prev:
		v.problem("changed", l, b.Seq, "The entry before this one is not the one that was written.")
	}
	if b.Kind != Break {
		return
	}
	var d breakDetail
	if json.Unmarshal(b.Detail, &d) != nil || d.Reason != tornLine {
		v.problem("break", l, b.Seq, "The chain was found broken here: "+b.Message)
	}
}

// end compares with the head, and with what was signed before it.
func (v *verifier) end(l line, b brief, hash string) {
	if b.Adopted > 0 {
		v.note("adopted", l, b.Seq, fmt.Sprintf("The %d entries before this one were written before a crash and signed after it.", b.Adopted))
	}
	if !v.signed {
		return
	}
	if b.Seq == v.mark.Seq {
		if v.atMark = true; hash != v.mark.Hash && v.mark.Seq < v.Head.Seq {
			v.problem("changed", l, b.Seq, "The entry is not the one that was signed when it was synced.")
		}
	}
	switch {
	case b.Seq == v.Head.Seq:
		if v.atHead = true; hash != v.Head.Hash {
			v.problem("changed", l, b.Seq, "The last entry is not the one that the head names.")
		}
	case b.Seq > v.Head.Seq:
		v.beyond++
	}
}

func (v *verifier) run(l line, b brief) {
	switch b.Kind {
	case Intent:
		v.open[b.ID] = b.Seq
	case Outcome:
		if _, ok := v.open[b.ID]; !ok {
			v.note("outcome", l, b.Seq, "The outcome has no intent.")
		}
		delete(v.open, b.ID)
	}
}

func (v *verifier) finish(next int) {
	if v.torn != nil {
		v.note("torn", *v.torn, 0, "The last line was never finished: an append was cut off, and nothing ran by it.")
	}
	if v.signed && !v.atHead {
		v.tail(next)
	} else if v.signed && !v.atMark {
		v.problem("removed", line{segment: v.mark.Segment}, v.mark.Seq, fmt.Sprintf("Entry %d, signed when it was synced, is missing.", v.mark.Seq))
	}
	if v.beyond > batch {
		v.problem("unsigned", line{}, v.Head.Seq+1, fmt.Sprintf("%d entries after the head are not signed; a crash leaves fewer.", v.beyond))
	} else if v.beyond > 0 {
		v.note("unsigned", line{}, v.Head.Seq+1, fmt.Sprintf("%d entries after the head were written before a crash; the next entry takes them in.", v.beyond))
	}
	for id := range v.open {
		v.Interrupted = append(v.Interrupted, id)
	}
	slices.SortFunc(v.Interrupted, func(a, b string) int { return cmp.Compare(v.open[a], v.open[b]) })
	v.OK = len(v.Problems) == 0
}

func (v *verifier) tail(next int) {
	if v.Head.Segment >= next {
		v.problem("segment-missing", line{segment: v.Head.Segment}, 0, fmt.Sprintf("Segment %d, where the chain ends, is missing.", v.Head.Segment))
	}
	if v.seq >= v.Head.Seq {
		return // a gap, reported where it is
	}
	message := fmt.Sprintf("The chain ends at entry %d, and the head names %d.", v.seq, v.Head.Seq)
	if v.seq >= v.Head.Synced {
		message += " The missing ones had not been synced to disk: a loss of power looks the same."
	}
	v.problem("tail-cut", line{segment: v.Head.Segment}, v.seq+1, message)
}
