package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"hcpx/internal/order"
)

// Anchors are heads that were kept outside, as ReadAnchors found them: 48 bytes for each, so that a year's log can be
// held against the chain.
type Anchors struct {
	heads []outside
	other uint64
	bad   []Problem
	more  uint64 // that bad does not list
}

// outside is one head that was kept.
type outside struct {
	seq    uint64
	hash   [32]byte
	line   int32
	synced bool // the entry was known to be on disk
	found  bool
}

// AnchorReport is what came of the anchors.
type AnchorReport struct {
	Heads  uint64 `json:"heads"`           // of this audit
	Newest uint64 `json:"newest"`          // the entry that the newest names
	Other  uint64 `json:"other,omitempty"` // of other audits
}

// ReadAnchors reads kept heads out of any text: lines of journald or syslog with what they put around a head, and the
// lines of `hcpx audit head --json`. Heads of other directories are counted. One that the key did not make is a
// problem: somebody else wrote it, or the key is another by now.
func ReadAnchors(cfg Config, r io.Reader) (*Anchors, error) {
	k, err := readKey(cfg.KeyPath)
	if err != nil && !keyless(err) {
		return nil, err
	}
	own := string(appendPath(nil, realDir(cfg.Dir)))
	a := &Anchors{}
	in := bufio.NewReaderSize(r, 64<<10)
	for no := 1; ; no++ {
		line, err := in.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // longer than any line with a head
			_, err = in.ReadSlice('\n')
			line = nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		a.take(line, no, k, own)
		if err != nil {
			break
		}
	}
	order.By(a.heads, func(x, y outside) int { return cmp.Compare(x.seq, y.seq) })
	return a, nil
}

func (a *Anchors) take(line []byte, no int, k *key, own string) {
	p, ours, ok := parseAnchor(line, k)
	if !ours {
		p, ours, ok = parseSigned(line, k)
		p.dir = own
	}
	var o outside
	if ok {
		n, err := hex.Decode(o.hash[:], []byte(p.Hash[:min(len(p.Hash), 64)]))
		ok = err == nil && n == len(o.hash) && len(p.Hash) == 64
	}
	switch {
	case !ours:
	case !ok:
		a.problem("anchor-malformed", 0, fmt.Sprintf("Line %d of what was kept begins a head and is none; it was cut or changed.", no))
	case p.dir != own:
		a.other++
	case k != nil && !p.proven:
		a.problem("anchor-forged", p.Seq, fmt.Sprintf("Line %d of what was kept is a head that this key did not make: somebody else wrote it, or the key is another by now.", no))
	default:
		o.seq, o.line, o.synced = p.Seq, int32(no), p.Seq <= p.Synced
		a.heads = append(a.heads, o)
	}
}

func (a *Anchors) problem(kind string, seq uint64, message string) {
	if len(a.bad) >= maxProblems {
		a.more++
		return
	}
	a.bad = append(a.bad, Problem{Kind: kind, Seq: seq, Message: message})
}

// parseSigned reads a line of `hcpx audit head --json`.
func parseSigned(line []byte, k *key) (p parsedAnchor, ours, ok bool) {
	line = bytes.TrimSpace(line)
	if !bytes.HasPrefix(line, []byte(`{"seq":`)) || !bytes.Contains(line, []byte(`"sig":`)) {
		return p, false, false
	}
	if json.Unmarshal(line, &p.Head) != nil || p.Seq == 0 {
		return p, true, false
	}
	p.proven = k != nil && bytes.Equal(p.Key, k.public) && ed25519.Verify(k.public, p.message(), p.Sig)
	return p, true, true
}

// meet marks the kept heads that name this entry.
func (a *Anchors) meet(seq uint64, l line) {
	at, _ := slices.BinarySearchFunc(a.heads, seq, func(o outside, seq uint64) int { return cmp.Compare(o.seq, seq) })
	if at == len(a.heads) || a.heads[at].seq != seq {
		return
	}
	hash := l.sum()
	for ; at < len(a.heads) && a.heads[at].seq == seq; at++ {
		a.heads[at].found = a.heads[at].found || a.heads[at].hash == hash
	}
}

// VerifyAnchored is Verify, held against heads that were kept outside as well: each must name an entry that is in the
// audit as it was then. So it finds what the owner of the files can do to them, key in hand: a cut tail with a new
// head, another history, an older copy. The anchors must have been read before, for appends go on.
func VerifyAnchored(cfg Config, a *Anchors) (Report, error) {
	v := newVerifier()
	v.anchors = a
	return v.verify(cfg)
}

func (v *verifier) anchored() {
	a := v.anchors
	if a == nil {
		return
	}
	for _, p := range a.bad {
		v.problem(p.Kind, line{}, p.Seq, p.Message)
	}
	v.More += a.more
	report := &AnchorReport{Heads: uint64(len(a.heads)), Other: a.other}
	v.Report.Anchors = report
	for _, o := range a.heads {
		report.Newest = o.seq
		if o.found {
			continue
		}
		message := fmt.Sprintf("Entry %d was anchored (line %d of what was kept), and is not in the audit as it was then.", o.seq, o.line)
		if o.seq > v.seq {
			message = fmt.Sprintf("The chain ends at entry %d, and entry %d was anchored (line %d of what was kept).", v.seq, o.seq, o.line)
		}
		if !o.synced {
			message += " It had not been synced to disk: a loss of power looks the same."
		}
		v.problem("anchor", line{}, o.seq, message)
	}
	switch {
	case report.Heads == 0 && len(a.bad) == 0:
		v.problem("anchor-none", line{}, 0, "What was kept names no head of this audit.")
	case report.Heads > 0 && report.Newest < v.seq:
		v.note("anchor-behind", line{}, report.Newest, fmt.Sprintf("The %d entries after this one are under no head that was kept.", v.seq-report.Newest))
	}
}
