package jsondoc

import (
	"bytes"
	"unicode/utf8"
)

// every is the distance of the marks in bytes.
const every = 4 << 10

// Places places offsets of one source, each at the cost of a few thousand bytes, wherever it lies. It is
// not changed after it was made.
type Places struct {
	src   []byte
	marks []mark
}

// mark is a place that is known already.
type mark struct {
	offset int
	spot   Spot
}

// NewPlaces reads the source once.
func NewPlaces(src []byte) *Places {
	x := &Places{src: src, marks: []mark{{0, Spot{1, 1}}}}
	for at := every; at < len(src); at += every {
		start := at
		for start < len(src) && !utf8.RuneStart(src[start]) {
			start++
		}
		x.marks = append(x.marks, mark{start, x.from(x.marks[len(x.marks)-1], start)})
	}
	return x
}

// Place turns a byte offset into line and column, as the function Place does.
func (x *Places) Place(offset int) (line, column int) {
	offset = min(max(offset, 0), len(x.src))
	i := min(offset/every, len(x.marks)-1)
	if x.marks[i].offset > offset {
		i-- // the mark was moved to the start of a character
	}
	at := x.from(x.marks[i], offset)
	return at.Line, at.Column
}

func (x *Places) from(m mark, offset int) Spot {
	between := x.src[m.offset:offset]
	if lines := bytes.Count(between, []byte{'\n'}); lines > 0 {
		start := bytes.LastIndexByte(between, '\n') + 1
		return Spot{m.spot.Line + lines, 1 + utf8.RuneCount(between[start:])}
	}
	return Spot{m.spot.Line, m.spot.Column + utf8.RuneCount(between)}
}
