package store

import (
	"fmt"
	"strconv"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// recordLimits: 4,096 stamps of a pack and of its previous version fit well.
var recordLimits = jsondoc.Limits{Bytes: 64 << 20, Depth: 16}

// decodeRecord reads a pack's record. It stands on the path of every exec, so it reads by hand: reflection would
// cost a cold start more than the whole digest check.
func decodeRecord(path string, src []byte) (*record, error) {
	root, faults := jsondoc.Parse(src, recordLimits)
	d := &decoder{}
	if len(faults) > 0 {
		d.fail(faults[0].Offset, faults[0].Message)
	} else {
		r := d.record(root)
		if d.reason == "" {
			return r, nil
		}
	}
	damage := &DamagedError{Path: path, Reason: "is not a pack's record: " + d.reason}
	damage.Line, damage.Column = jsondoc.Place(src, d.offset)
	return nil, damage
}

// decoder keeps the first thing that was not understood.
type decoder struct {
	offset int
	reason string
}

func (d *decoder) fail(offset int, reason string) {
	if d.reason == "" {
		d.offset, d.reason = offset, reason
	}
}

func (d *decoder) record(root *jsondoc.Node) *record {
	r := &record{Meta: *d.meta(root)}
	if p := root.Get("previous"); p != nil {
		r.Previous = d.meta(p)
	}
	return r
}

// meta reads one version. Members that a later runtime adds are left aside.
func (d *decoder) meta(n *jsondoc.Node) *Meta {
	m := &Meta{PackID: d.text(n, "pack_id"), Version: d.text(n, "version"), Source: d.text(n, "source"), InstalledBy: d.text(n, "installed_by")}
	m.Record.Digest = d.text(n, "digest")
	at, err := time.Parse(time.RFC3339Nano, d.text(n, "installed_at"))
	if err != nil {
		d.fail(n.Offset, "installed_at is no time")
	}
	m.InstalledAt = at
	if n.Has("compiled") {
		m.Sum = d.text(n, "compiled")
	}
	stats := n.Get("stats")
	m.Record.Stamps, m.Record.Dirs = d.stamps(stats.Get("files")), d.stamps(stats.Get("dirs"))
	if links := stats.Get("links"); links != nil {
		m.Record.Links = make(map[string]string, len(links.Members))
		for _, l := range links.Members {
			m.Record.Links[l.Key] = d.text(links, l.Key)
		}
	}
	return m
}

func (d *decoder) stamps(n *jsondoc.Node) map[string]protocol.FileStamp {
	if n == nil || n.Kind != jsondoc.Object {
		return nil
	}
	all := make(map[string]protocol.FileStamp, len(n.Members))
	for _, m := range n.Members {
		v := m.Value
		all[m.Key] = protocol.FileStamp{
			Dev: d.number(v, "dev"), Ino: d.number(v, "ino"), Size: int64(d.number(v, "size")), Mode: uint32(d.number(v, "mode")),
			MtimeNS: d.signed(v, "mtime_ns"), CtimeNS: d.signed(v, "ctime_ns"), SHA256: d.text(v, "sha256"), Young: young(v),
		}
	}
	return all
}

func (d *decoder) text(n *jsondoc.Node, key string) string {
	v := n.Get(key)
	if v == nil || v.Kind != jsondoc.String {
		d.fail(offsetOf(n), fmt.Sprintf("%s is not a text", key))
		return ""
	}
	return v.Text
}

func (d *decoder) number(n *jsondoc.Node, key string) uint64 {
	v := n.Get(key)
	if v != nil && v.Kind == jsondoc.Number {
		if x, err := strconv.ParseUint(v.Text, 10, 64); err == nil {
			return x
		}
	}
	d.fail(offsetOf(n), fmt.Sprintf("%s is not a number", key))
	return 0
}

func (d *decoder) signed(n *jsondoc.Node, key string) int64 {
	v := n.Get(key)
	if v != nil && v.Kind == jsondoc.Number {
		if x, err := strconv.ParseInt(v.Text, 10, 64); err == nil {
			return x
		}
	}
	d.fail(offsetOf(n), fmt.Sprintf("%s is not a number", key))
	return 0
}

func young(n *jsondoc.Node) bool {
	v := n.Get("young")
	return v != nil && v.Kind == jsondoc.Bool && v.Text == "true"
}

func offsetOf(n *jsondoc.Node) int {
	if n == nil {
		return 0
	}
	return n.Offset
}
