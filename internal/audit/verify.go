package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hcpx/internal/order"
)

// maxProblems bounds what a report lists: a chain that is wrong in a million places is wrong.
const maxProblems = 100

// Report is what Verify found. OK is that there is no Problem; Notes are traces of crashes, and
// Interrupted the runs with an intent and no outcome, cut off or still running: neither is tampering.
type Report struct {
	OK          bool      `json:"ok"`
	Entries     uint64    `json:"entries"`
	Segments    uint64    `json:"segments"`
	Problems    []Problem `json:"problems"`
	More        uint64    `json:"more,omitempty"` // problems that are not listed
	Notes       []Problem `json:"notes"`
	Interrupted []string  `json:"interrupted"`
	Head        Head      `json:"head"`
	// Anchors is there when the chain was held against heads that were kept outside.
	Anchors *AnchorReport `json:"anchors,omitempty"`
}

// Problem is one thing that does not fit, with its place. Kind is malformed, changed, forged, removed,
// reordered, tail-cut, segment-missing, audit-missing, head-missing, head-forged, key-missing, break, anchor,
// anchor-forged, anchor-malformed, anchor-none, or, of a note, torn, unsigned, adopted, outcome or anchor-behind.
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

// Verify reads the whole chain once, whatever its length, and checks each entry's MAC and link, the order of
// the segments, the end and what was signed last (§15.4). Without the key it checks the chain alone, and
// that is a Problem. It writes nothing; appends go on meanwhile, since it looks only at what was there when
// it began. An error means that the files could not be read.
func Verify(cfg Config) (Report, error) { return newVerifier().verify(cfg) }

func newVerifier() *verifier {
	v := &verifier{prev: zeroHash, open: map[string]uint64{}}
	v.Problems, v.Notes, v.Interrupted = []Problem{}, []Problem{}, []string{}
	return v
}

func (v *verifier) verify(cfg Config) (Report, error) {
	segs, err := v.snapshot(cfg)
	if err != nil {
		return Report{}, err
	}
	if len(segs) == 0 && len(v.Problems) == 0 && cfg.lost() {
		v.problem("audit-missing", line{}, 0, "There is no entry, and the store was changed before: the whole audit is missing.")
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
	v.anchored()
	v.finish(expect)
	return v.Report, nil
}

type verifier struct {
	Report
	key     *key // nil: not at hand
	prev    string
	seq     uint64
	signed  bool // Head is valid
	atHead  bool // the entry that it names was seen
	mark    Head // the last end that was synced, and signed then
	atMark  bool
	beyond  uint64 // entries after the head that continue the chain
	apart   bool   // one after the head did not: no more are taken in
	lost    bool   // the link to the line before is known to be broken, and reported
	forged  bool   // the line is not the key's, and that is reported
	torn    *line
	open    map[string]uint64 // run → seq of its intent
	anchors *Anchors          // nil: none were given
}

// snapshot takes the head and the lengths of all segments at one moment, under the lock.
func (v *verifier) snapshot(cfg Config) ([]segment, error) {
	f, err := openFile(filepath.Join(cfg.Dir, "head"), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		segs, err := segments(cfg.Dir)
		if err != nil || len(segs) == 0 {
			return nil, err
		}
		v.problem("head-missing", line{}, 0, "There are entries, and no head: the end of the chain can't be checked.")
		return segs, v.useKey(cfg.KeyPath)
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
	if err := v.useKey(cfg.KeyPath); err != nil || v.key == nil {
		return segs, err
	}
	head, err := inspect(text, v.key)
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

// useKey reads the key, if it is at hand.
func (v *verifier) useKey(path string) (err error) {
	v.key, err = readKey(path)
	why := "missing"
	switch {
	case errors.Is(err, fs.ErrPermission):
		why = "not readable"
	case !errors.Is(err, ErrNoKey):
		return err
	}
	v.problem("key-missing", line{}, 0, "The key is "+why+": only the chain is checked, not who wrote its entries, nor where it ends.")
	return nil
}

func place(kind string, l line, seq uint64, message string) Problem {
	return Problem{Kind: kind, Seq: seq, Segment: l.segment, Line: l.no, Message: message}
}

func (v *verifier) problem(kind string, l line, seq uint64, message string) {
	if len(v.Problems) == maxProblems {
		v.More++
		return
	}
	v.Problems = append(v.Problems, place(kind, l, seq, message))
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
		v.prev, v.lost, v.apart = hash, true, true
		return nil
	}
	v.Entries++
	linked := v.link(l, b)
	v.forged = v.key != nil && !v.key.wrote(l.raw)
	v.prev, v.seq = hash, b.Seq
	if v.anchors != nil {
		v.anchors.meet(b.Seq, l)
	}
	v.end(l, b, linked)
	if !v.forged {
		v.run(l, b)
	}
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

// link checks an entry against the line before it, and says whether it continues the chain.
func (v *verifier) link(l line, b brief) bool {
	next := v.seq + 1
	jump := b.Kind == Break && b.Seq > v.seq // a break may count on from entries that are missing
	linked := b.Prev == v.prev && (b.Seq == next || jump)
	switch {
	case v.lost:
		v.lost = false
	case b.Seq > next && !jump:
		v.problem("removed", l, b.Seq, fmt.Sprintf("Entries %d to %d are missing before this one.", next, b.Seq-1))
	case b.Seq < next:
		v.problem("reordered", l, b.Seq, fmt.Sprintf("Entry %d stands where %d belongs.", b.Seq, next))
	case !linked && !v.forged: // of a forged line it is known already
		v.problem("changed", l, b.Seq, "The entry before this one is not the one that was written.")
	}
	if b.Kind != Break {
		return linked
	}
	var d breakDetail
	if json.Unmarshal(b.Detail, &d) != nil || d.Reason != tornLine {
		v.problem("break", l, b.Seq, "The chain was found broken here: "+b.Message)
	}
	return linked
}

// end compares with the head, and with what was signed before it.
func (v *verifier) end(l line, b brief, linked bool) {
	beyond := v.signed && b.Seq > v.Head.Seq
	v.apart = v.apart || beyond && (v.forged || !linked)
	switch {
	case v.forged && beyond:
		v.problem("forged", l, b.Seq, "The entry after the head was not written by the key's holder.")
		return
	case v.forged:
		v.problem("changed", l, b.Seq, "The entry is not what the key's holder wrote: it was changed, or put in.")
	case b.Adopted > 0:
		v.note("adopted", l, b.Seq, fmt.Sprintf("The %d entries before this one were written before a crash and signed after it.", b.Adopted))
	}
	if beyond && !v.apart {
		v.beyond++
	}
	if !v.signed {
		return
	}
	if b.Seq == v.mark.Seq {
		if v.atMark = true; v.prev != v.mark.Hash && v.mark.Seq < v.Head.Seq && !v.forged {
			v.problem("changed", l, b.Seq, "The entry is not the one that was signed when it was synced.")
		}
	}
	if b.Seq == v.Head.Seq {
		if v.atHead = true; v.prev != v.Head.Hash && !v.forged {
			v.problem("changed", l, b.Seq, "The last entry is not the one that the head names.")
		}
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
		v.note("unsigned", line{}, v.Head.Seq+1, fmt.Sprintf("%d entries after the head were written before a crash, and are not yet under it.", v.beyond))
	}
	for id := range v.open {
		v.Interrupted = append(v.Interrupted, id)
	}
	order.By(v.Interrupted, func(a, b string) int { return cmp.Compare(v.open[a], v.open[b]) })
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
