package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hcpx/internal/audit"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
)

// exportView answers an export into a file.
type exportView struct {
	File    string `json:"file"`
	Format  string `json:"format"`
	Entries uint64 `json:"entries"`
}

// runAuditExport writes the chosen entries in their order (§15.4), to stdout or into a new file of this user's.
func runAuditExport(_ context.Context, d *deps, o exportOptions) error {
	cfg, err := d.auditConfig()
	if err != nil {
		return err
	}
	x := exporter{o: o, version: buildVersion().Version, tame: d.env.OutTTY && o.Output == ""}
	if o.Output == "" {
		return x.run(cfg, d.env.Out)
	}
	path := o.Output
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.env.Dir, path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usage("audit export", "%s exists already, and an export writes over nothing", path)
	case err != nil:
		return broken("make the file of the export", err)
	}
	if err := closed(x.run(cfg, f), f); err != nil {
		return err
	}
	return d.show(exportView{path, o.Format, x.entries}, func(p *page) {
		p.styled(good, "%s in %s", counted(x.entries, "entry is", "entries are"), path)
	})
}

// closed makes a file durable whatever was said of its content, which comes first.
func closed(said error, f *os.File) error {
	if err := errors.Join(f.Sync(), f.Close()); said == nil && err != nil {
		return broken("write the export", err)
	}
	return said
}

// exporter writes one entry at a time: its memory does not grow with the audit.
type exporter struct {
	o       exportOptions
	version string
	tame    bool // a terminal reads it
	entries uint64
	event   []byte
}

// run shows what entries hide as they do, in both forms. A line that is no entry fits no choice and has no event; it is
// counted, and the export then fails: it may not look whole.
func (x *exporter) run(cfg audit.Config, to io.Writer) error {
	out := bufio.NewWriterSize(to, 64<<10)
	malformed := 0
	var stopped error // the reader of our output went away, or its disk is full
	err := audit.Read(cfg, 0, func(e audit.Entry, raw []byte) error {
		switch {
		case e.Seq == 0:
			malformed++
		case x.o.chooses(e):
			x.entries++
			_, stopped = out.Write(x.line(e, raw))
		}
		return stopped
	})
	if err == nil {
		stopped = out.Flush()
	}
	switch {
	case stopped != nil:
		return broken("write the export", stopped)
	case err != nil:
		return unreadable(err)
	case malformed > 0:
		return protocol.Fail(protocol.AuditBroken, fmt.Sprintf("The export is not whole; lines that are no entries: %d.", malformed)).WithHint("hcpx audit verify")
	}
	return nil
}

func (x *exporter) line(e audit.Entry, raw []byte) []byte {
	if x.o.Format == "cef" {
		x.event = audit.AppendCEF(x.event[:0], e, x.version)
	} else {
		x.event = append(append(x.event[:0], raw...), '\n')
	}
	if x.tame {
		x.event = []byte(tame(string(x.event)))
	}
	return x.event
}

// chooses says whether an entry is wanted. One whose time cannot be read is not hidden by a choice of times.
func (o exportOptions) chooses(e audit.Entry) bool {
	if o.Pack != "" && !grant.Glob(o.Pack, e.Pack) || o.Principal != "" && !grant.Glob(o.Principal, e.Principal) {
		return false
	}
	at, err := time.Parse(time.RFC3339Nano, e.Time)
	return err != nil || !(at.Before(o.Since) || !o.Until.IsZero() && !at.Before(o.Until))
}
