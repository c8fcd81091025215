package app

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// ids makes run ids (§15.4): 26 letters and digits, the first ten of them the time in milliseconds, so that
// ids sort as they were made, the rest random. Within one millisecond the next id is the last plus one.
func ids(now func() time.Time) func() string {
	var mu sync.Mutex
	var last [16]byte
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		var id [16]byte
		binary.BigEndian.PutUint64(id[:8], uint64(now().UnixMilli())<<16)
		_, _ = rand.Read(id[6:]) // never fails: without randomness the Go runtime ends the process
		if string(id[:6]) <= string(last[:6]) {
			id = next(last)
		}
		last = id
		return text(id)
	}
}

// next is the id after id. It carries into the time when a millisecond is full.
func next(id [16]byte) [16]byte {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]++
		if id[i] != 0 {
			break
		}
	}
	return id
}

// text writes 128 bits as 26 digits of base 32, in an alphabet that sorts and leaves I, L, O and U out.
func text(id [16]byte) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	var out [26]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = digits[low&31]
		low = low>>5 | high<<59
		high >>= 5
	}
	return string(out[:])
}
