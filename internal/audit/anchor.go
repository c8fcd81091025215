package audit

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Where the heads are anchored (§15.4): the system's log belongs to another user than the audit's files.
const (
	AnchorNone     = "none"
	AnchorJournald = "journald" // the native protocol of systemd-journald
	AnchorSyslog   = "syslog"   // as syslog(3) sends
)

// anchorName is who speaks in the system's log.
const anchorName = "hcpx-audit"

// anchorStart begins an anchored head. Neither audit/head nor an entry begins so, and one key serves all three.
const anchorStart = "hcpx-audit-head 1 seq="

// ErrAnchor: a head must be anchored, and the log that should take it does not.
var ErrAnchor = errors.New("its head can't be anchored")

// anchor sends heads to the system's log. It opens nothing before the first one.
type anchor struct {
	kind, path string
	dir        string // the audit's, without links: which of a user's audits a head is of
	sock       *datagram
}

func anchorOf(cfg Config) (*anchor, error) {
	usual := ""
	switch cfg.Anchor {
	case "", AnchorNone:
		return nil, nil
	case AnchorJournald:
		usual = journaldSocket
	case AnchorSyslog:
		usual = syslogSocket
	default:
		return nil, fmt.Errorf("there is no anchor %q", cfg.Anchor)
	}
	return &anchor{kind: cfg.Anchor, path: cmp.Or(cfg.Socket, usual), dir: realDir(cfg.Dir)}, nil
}

// realDir is a directory without links; what is not there yet, or any more, keeps its name.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	if parent := filepath.Dir(dir); parent != dir {
		return filepath.Join(realDir(parent), filepath.Base(dir))
	}
	return dir
}

// hold sends a head. The log may have been restarted since the last one, so a socket that fails is opened again once.
func (a *anchor) hold(h Head, k *key, now time.Time) error {
	text := a.frame(anchorLine(h, a.dir, k), now)
	for again := a.sock != nil; ; again = false {
		err := a.reach()
		if err == nil {
			if err = a.sock.send(text); err == nil {
				return nil
			}
			a.close()
		}
		if !again {
			return a.failed(err)
		}
	}
}

func (a *anchor) failed(err error) error {
	return fmt.Errorf("%w in %s at %s (audit.anchor): %w", ErrAnchor, a.kind, a.path, err)
}

// reach opens the socket.
func (a *anchor) reach() (err error) {
	if a.sock == nil {
		a.sock, err = dialDatagram(a.path)
	}
	return err
}

func (a *anchor) close() {
	if a.sock != nil {
		a.sock.close()
		a.sock = nil
	}
}

// frame is the message of a protocol: a notice of the facility authpriv, which is 10.
func (a *anchor) frame(line []byte, now time.Time) []byte {
	if a.kind == AnchorSyslog {
		return fmt.Appendf(nil, "<85>%s %s: %s", now.Local().Format(time.Stamp), anchorName, line)
	}
	return fmt.Appendf(nil, "MESSAGE=%s\nPRIORITY=5\nSYSLOG_FACILITY=10\nSYSLOG_IDENTIFIER=%s\n", line, anchorName)
}

// anchorLine is a head as the system's log keeps it: one line of plain words, under the MAC of the key, so that
// verify tells a head of this key from what others write.
func anchorLine(h Head, dir string, k *key) []byte {
	b := strconv.AppendUint([]byte(anchorStart), h.Seq, 10)
	b = fmt.Appendf(b, " hash=%s segment=%d size=%d synced=%d time=%s dir=", h.Hash, h.Segment, h.Size, h.Synced, h.Time)
	b = appendPath(b, dir)
	return fmt.Appendf(b, " mac=%s", base64.StdEncoding.EncodeToString(k.mac(b)))
}

// appendPath writes a path without a blank, a quote or anything else that some log writes in its own way: other bytes
// than letters, digits and a few marks as %XX.
func appendPath(dst []byte, path string) []byte {
	for _, c := range []byte(path) {
		plain := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("/._-~", c) >= 0
		if plain {
			dst = append(dst, c)
		} else {
			dst = fmt.Appendf(dst, "%%%02X", c)
		}
	}
	return dst
}

// parsedAnchor is an anchored head as it was read; proven says that the key made it.
type parsedAnchor struct {
	Head
	dir    string // as written
	proven bool
}

// parseAnchor finds an anchored head in a line of a log, whatever the log put before and after it. It reads only what
// anchorLine writes. ours is false for a line that has none.
func parseAnchor(line []byte, k *key) (p parsedAnchor, ours, ok bool) {
	at := bytes.Index(line, []byte(anchorStart))
	if at < 0 {
		return p, false, false
	}
	line = line[at:]
	end := bytes.Index(line, []byte(" mac="))
	if end < 0 || len(line) < end+len(" mac=")+macLength {
		return p, true, false
	}
	body, mac := line[:end], line[end+len(" mac="):][:macLength]
	var f [7]string
	words := strings.Split(strings.TrimPrefix(string(body), "hcpx-audit-head 1 "), " ")
	if len(words) != len(f) {
		return p, true, false
	}
	for i, name := range [...]string{"seq=", "hash=", "segment=", "size=", "synced=", "time=", "dir="} {
		if f[i], ok = strings.CutPrefix(words[i], name); !ok {
			return p, true, false
		}
	}
	h, err := headOf(f[:6])
	p = parsedAnchor{Head: h, dir: f[6], proven: k != nil && hmac.Equal(base64.StdEncoding.AppendEncode(nil, k.mac(body)), mac)}
	return p, true, err == nil && h.Seq > 0
}
