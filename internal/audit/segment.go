package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hcpx/internal/order"
)

// maxLine bounds an entry: Append writes none that is longer, readers take none.
const maxLine = 16 << 20

// segment is one file of the chain, as long as it was when it was listed.
type segment struct {
	no   int
	size int64
}

func segmentPath(dir string, no int) string {
	return filepath.Join(dir, fmt.Sprintf("%08d.ndjson", no))
}

// segments lists the files of the chain by number; none when there is no audit yet.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []segment
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), ".ndjson")
		no, err := strconv.Atoi(digits)
		if !ok || err != nil || segmentPath(dir, no) != filepath.Join(dir, e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		list = append(list, segment{no, info.Size()})
	}
	order.By(list, func(a, b segment) int { return a.no - b.no })
	return list, nil
}

// line is one line of a segment. Raw is without its LF and only valid during the call; a torn one is the
// last of its segment and had none.
type line struct {
	segment, no int
	offset      int64
	raw         []byte
	torn        bool
}

func (l line) sum() [sha256.Size]byte { return sha256.Sum256(l.raw) }

func (l line) hash() string {
	sum := l.sum()
	return hex.EncodeToString(sum[:])
}

// tooLong: a line passes maxLine, so it was not written by Append.
type tooLong struct{ segment, no int }

func (e *tooLong) Error() string {
	return fmt.Sprintf("line %d of segment %d is longer than %d bytes", e.no, e.segment, maxLine)
}

// walk calls fn with each line of one segment from an offset on.
func walk(dir string, s segment, offset int64, fn func(line) error) error {
	f, err := openFile(segmentPath(dir, s.no), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.NewSectionReader(f, offset, s.size-offset), 64<<10)
	var long []byte
	for no := 1; ; no++ {
		raw, err := r.ReadSlice('\n')
		for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); raw, err = r.ReadSlice('\n') {
			if long = append(long, raw...); len(long) > maxLine {
				return &tooLong{s.no, no}
			}
		}
		if len(long) > 0 {
			long = append(long, raw...)
			raw = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(raw) == 0 {
			return nil
		}
		l := line{segment: s.no, no: no, offset: offset, raw: bytes.TrimSuffix(raw, []byte{'\n'}), torn: err != nil}
		offset += int64(len(raw))
		if err := fn(l); err != nil {
			return err
		}
	}
}
