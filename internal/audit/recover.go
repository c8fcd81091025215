package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// The reasons of a break entry. Only a torn line is no sign of tampering.
const (
	tornLine     = "torn"     // a last line without its end, after all that the head covers
	cutTail      = "cut"      // entries that the head covers are missing
	foreignTail  = "foreign"  // lines after the head that do not continue the chain
	forgedTail   = "forged"   // lines after the head that the key's holder did not write
	unsignedTail = "unsigned" // more entries after the head than a crash can leave
	badHead      = "head"     // the head is missing or not made with the key
)

// breakDetail stands in the break entry.
type breakDetail struct {
	Reason  string `json:"reason"`
	Segment int    `json:"segment"`
	Offset  int64  `json:"offset"`
	Bytes   int    `json:"bytes,omitempty"`  // of the torn line
	SHA256  string `json:"sha256,omitempty"` // of the torn line
	Head    string `json:"head,omitempty"`   // the head that did not fit
}

// chain follows the lines after a position.
type chain struct {
	position
	key  *key
	err  string // the reason at which it ended
	torn *line
}

func (c *chain) take(l line) error {
	c.Segment = l.segment
	c.Size = l.offset
	if l.torn {
		l.raw = append([]byte(nil), l.raw...)
		c.torn = &l
		return nil
	}
	b, ok := parseBrief(l.raw)
	if ok && !c.key.wrote(l.raw) {
		c.err = forgedTail
		return errStop
	}
	if c.torn != nil && (!ok || b.Kind != Break) || !ok || b.Prev != c.Hash || b.Seq != c.Seq+1 {
		c.err = foreignTail
		return errStop
	}
	c.torn = nil
	c.adopted++
	c.Seq, c.Hash = b.Seq, l.hash()
	c.Size = l.offset + int64(len(l.raw)) + 1
	return nil
}

var errStop = errors.New("stop")

// recover decides how to go on when the files do not end where the head says. Entries after it that
// continue the chain and have the key's MAC, at most as many as a crash can leave, were written and not yet
// covered: the next entry takes them in and says so. Anything else is recorded by a break entry at the start of a new
// segment; nothing is removed or written over. h is nil for a head that is not valid.
func (l *FileLog) recover(h *Head, head []byte) (position, error) {
	segs, err := segments(l.cfg.Dir)
	if err != nil {
		return position{}, err
	}
	if h == nil {
		return l.breakOff(segs, position{}, breakDetail{Reason: badHead, Head: string(head)})
	}
	known := position{Head: *h}
	c := chain{position: known, key: l.key}
	covered := h.Size == 0
	for _, s := range segs {
		if s.no < h.Segment || c.err != "" {
			continue
		}
		offset := int64(0)
		if s.no == h.Segment {
			offset, covered = h.Size, s.size >= h.Size
		}
		if !covered {
			break
		}
		if s.size == 0 {
			c.Segment, c.Size = s.no, 0
		}
		if err := walk(l.cfg.Dir, s, min(offset, s.size), c.take); err != nil && !errors.Is(err, errStop) {
			if long := (*tooLong)(nil); !errors.As(err, &long) {
				return position{}, err
			}
			c.err = foreignTail
		}
	}
	d := breakDetail{Reason: c.err, Segment: c.Segment, Offset: c.Size, Head: strings.TrimSpace(string(head))}
	switch {
	case !covered:
		d.Reason = cutTail
	case c.err == "" && c.adopted > batch:
		d.Reason = unsignedTail
	case c.err == "" && c.torn != nil:
		d.Reason, d.Head = tornLine, ""
		d.Segment, d.Offset, d.Bytes, d.SHA256 = c.torn.segment, c.torn.offset, len(c.torn.raw), c.torn.hash()
		return l.breakOff(segs, c.position, d)
	case c.err == "":
		return c.position, nil
	}
	return l.breakOff(segs, known, d)
}

// breakOff writes the break entry. After a torn line the chain goes on from where it ended; else its
// prev is the last whole line that is there, and its number follows the highest that is known.
func (l *FileLog) breakOff(segs []segment, at position, d breakDetail) (position, error) {
	for _, s := range segs {
		at.Segment = max(at.Segment, s.no)
	}
	if len(segs) > 0 { // the break entry is durable, so what is before it must be
		if err := syncPath(segmentPath(l.cfg.Dir, segs[len(segs)-1].no)); err != nil {
			return position{}, err
		}
	}
	at.Segment, at.Size = at.Segment+1, 0
	if d.Reason != tornLine {
		if err := l.lastLine(segs, &at); err != nil {
			return position{}, err
		}
	}
	detail, err := json.Marshal(d)
	if err != nil {
		return position{}, err
	}
	e := Entry{Kind: Break, Message: breakMessage(d), Detail: detail}
	if err := l.write(at, &e, true); err != nil {
		return position{}, err
	}
	return position{Head: l.last.now}, nil
}

func (l *FileLog) lastLine(segs []segment, at *position) error {
	at.Hash = zeroHash
	for _, s := range segs {
		err := walk(l.cfg.Dir, s, 0, func(ln line) error {
			if ln.torn {
				return nil
			}
			at.Hash = ln.hash()
			if b, ok := parseBrief(ln.raw); ok && b.Seq < 1<<62 {
				at.Seq = max(at.Seq, b.Seq)
			}
			return nil
		})
		if long := (*tooLong)(nil); err != nil && !errors.As(err, &long) {
			return err
		}
	}
	return nil
}

func breakMessage(d breakDetail) string {
	switch d.Reason {
	case tornLine:
		return fmt.Sprintf("The last line of segment %d was never finished; it is left as it is.", d.Segment)
	case cutTail:
		return "Entries that the head covers are missing."
	case foreignTail:
		return fmt.Sprintf("Segment %d has lines after the head that do not continue the chain.", d.Segment)
	case forgedTail:
		return fmt.Sprintf("Segment %d has lines after the head that the key's holder did not write.", d.Segment)
	case unsignedTail:
		return "There are more entries after the head than a crash can leave."
	default:
		return "The head is missing or not made with the key."
	}
}
