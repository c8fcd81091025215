package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// KeyKind is the shelf of the store that idempotency records lie on.
const KeyKind = "idempotency"

// KeyLife is how long a key stands for its run (§15.5).
const KeyLife = 24 * time.Hour

// Of one Principal, all its labels together (§9.3): so many runs, and answers of so many bytes, may be kept under keys within KeyLife.
// Beyond that a new key is refused, since to forget an old one would let it run again.
const (
	maxKeys     = 4096
	maxKeyBytes = 256 << 20
)

// ErrTooManyKeys: the Principal has as many runs under keys as may be kept.
var ErrTooManyKeys = errors.New("too many runs are kept under idempotency keys")

// prunedAtOnce bounds what one claim cleans up of others.
const prunedAtOnce = 16

// Keys are the runs of idempotency keys. It may be used by several at once, and by several processes.
type Keys struct {
	Shelf store.Shelf
	Now   func() time.Time
	// Most and MostBytes are for tests; 0 = maxKeys and maxKeyBytes.
	Most      int
	MostBytes int64
}

// Claim is one request under a key.
type Claim struct {
	Principal protocol.Principal
	Tenant    string
	Key       string
	Canonical []byte // of the request; it holds secret arguments, so only its hash is kept
	Run       string
}

// Standing is what a key says about a request.
type Standing string

// The standings of §15.5.
const (
	Free       Standing = ""
	Conflict   Standing = "conflict"    // the key belongs to another request
	InProgress Standing = "in_progress" // its run has not ended
	Unknown    Standing = "unknown"     // its run was cut off: what it did is not known
	Answered   Standing = "answered"    // its run has ended, and this is what it answered
)

// record is one key on disk. Neither the key nor the request stands there, only what tells them again.
type record struct {
	Bound  string    `json:"bound"` // hash of run and canonical request
	Run    string    `json:"run"`
	Since  time.Time `json:"since"`
	Answer []byte    `json:"answer,omitempty"` // the whole envelope
}

// Found is what a key stands for.
type Found struct {
	Standing Standing
	Run      string
	Answer   []byte
}

// name is that of the record: whose it is, so that his can be counted unread, and which.
func (c *Claim) name() string {
	sum := sha256.Sum256([]byte(c.Tenant + "\n" + string(c.Principal) + "\n" + c.Key))
	return c.owner() + hex.EncodeToString(sum[:])
}

func (c *Claim) owner() string {
	sum := sha256.Sum256([]byte(c.Tenant + "\n" + host(c.Principal)))
	return hex.EncodeToString(sum[:8]) + "-"
}

// Look says what the key stands for. It changes nothing.
func (k *Keys) Look(c Claim) (found Found, err error) {
	if r, err := k.read(c.name()); err != nil || r == nil {
		return Found{}, err // the usual case takes no lock; Take asks again
	}
	err = k.Shelf.Locked(func() error {
		var release func() error
		if found, release, err = k.judge(c); release != nil {
			err = errors.Join(err, release())
		}
		return err
	})
	return found, err
}

// judge says what a key stands for, and holds it when no living run does. The caller has the lock.
func (k *Keys) judge(c Claim) (found Found, release func() error, err error) {
	r, err := k.read(c.name())
	if err != nil {
		return Found{}, nil, err
	}
	if release, err = k.Shelf.Hold(c.name()); err != nil {
		return Found{}, nil, err
	}
	switch {
	case release != nil && (r == nil || k.over(r)):
	case r == nil:
		found = Found{Standing: InProgress}
	case r.Bound != bound(r.Run, c.Canonical):
		found = Found{Standing: Conflict, Run: r.Run}
	case r.Answer != nil:
		found = Found{Standing: Answered, Run: r.Run, Answer: r.Answer}
	case release == nil:
		found = Found{Standing: InProgress, Run: r.Run}
	default:
		found = Found{Standing: Unknown, Run: r.Run}
	}
	return found, release, nil
}

// read gives the record of a key, nil when there is none, or an answered one's life is over.
func (k *Keys) read(name string) (*record, error) {
	data, err := k.Shelf.Get(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil || r.Run == "" {
		return nil, fmt.Errorf("the record %s/%s cannot be read", KeyKind, name)
	}
	if r.Answer != nil && k.over(&r) {
		return nil, nil
	}
	return &r, nil
}

func (k *Keys) over(r *record) bool { return !k.Now().Before(r.Since.Add(KeyLife)) }

// Held is a claimed key; its run answers under it, or gives it back.
type Held struct {
	keys    *Keys
	name    string
	record  record
	release func() error
}

// Take claims a free key for a run: on disk when it returns, and held until Keep, Drop or the end of the process. nil
// means that the key stands for something else, which Found says.
func (k *Keys) Take(c Claim) (held *Held, found Found, err error) {
	err = k.Shelf.Locked(func() error {
		if err := k.prune(c.name(), prunedAtOnce); err != nil {
			return err
		}
		var release func() error
		if found, release, err = k.judge(c); err != nil || release == nil {
			return err
		}
		if found.Standing != Free {
			return release()
		}
		if err := k.room(&c); err != nil {
			return errors.Join(err, release())
		}
		h := &Held{keys: k, name: c.name(), release: release, record: record{Bound: bound(c.Run, c.Canonical), Run: c.Run, Since: k.Now().UTC()}}
		if err := h.put(); err != nil {
			return errors.Join(err, release())
		}
		held = h
		return nil
	})
	return held, found, err
}

func (h *Held) put() error {
	data, err := json.Marshal(h.record)
	if err != nil {
		return err
	}
	return h.keys.Shelf.Put(h.name, append(data, '\n'))
}

// Keep records the answer, which every repeat gets, byte for byte.
func (h *Held) Keep(answer []byte) error {
	h.record.Answer = answer
	err := h.keys.Shelf.Locked(h.put)
	return errors.Join(err, h.release())
}

// Drop gives the key back: nothing ran under it.
func (h *Held) Drop() error {
	return h.keys.Shelf.Locked(func() error { return errors.Join(h.release(), h.keys.Shelf.Drop(h.name)) })
}

// room is nil when the Principal may have one key more. Where it seems not so, all that is over is dropped first.
func (k *Keys) room(c *Claim) error {
	full, err := k.full(c)
	if err != nil || !full {
		return err
	}
	if err := k.prune(c.owner(), math.MaxInt); err != nil {
		return err
	}
	if full, err = k.full(c); err == nil && full {
		err = ErrTooManyKeys
	}
	return err
}

// full counts what is kept of the Principal. One that is taken over already has its place.
func (k *Keys) full(c *Claim) (bool, error) {
	names, err := k.Shelf.Names()
	if err != nil {
		return false, err
	}
	most, bytes := cmp.Or(k.Most, maxKeys), cmp.Or(k.MostBytes, maxKeyBytes)
	at, _ := slices.BinarySearch(names, c.owner())
	for _, name := range names[at:] {
		if !strings.HasPrefix(name, c.owner()) {
			break
		}
		if name == c.name() {
			continue
		}
		size, err := k.Shelf.Size(name)
		if err != nil {
			return false, err
		}
		if most, bytes = most-1, bytes-size; most <= 0 || bytes <= 0 {
			return true, nil
		}
	}
	return false, nil
}

// prune drops records whose life is over, as many of those that follow the name as it is told to look at: every claim cleans
// another part.
func (k *Keys) prune(from string, most int) error {
	names, err := k.Shelf.Names()
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearch(names, from)
	for i := range min(len(names), most) {
		name := names[(at+i)%len(names)]
		data, err := k.Shelf.Get(name)
		var r record
		if err != nil || name == from || json.Unmarshal(data, &r) != nil || !k.over(&r) {
			continue
		}
		release, err := k.Shelf.Hold(name)
		if err != nil {
			return err
		}
		if release == nil {
			continue // it goes on still
		}
		if err := errors.Join(release(), k.Shelf.Drop(name)); err != nil {
			return err
		}
	}
	return nil
}
