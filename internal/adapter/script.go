package adapter

import (
	"bytes"
	"io"
	"path"
	"strings"
)

// FirstLine is the first line of a program, as much of it as Linux reads.
func FirstLine(r io.Reader) string {
	buf := make([]byte, 256)
	n, _ := io.ReadFull(r, buf) // what can't be read is no script
	line, _, _ := bytes.Cut(buf[:n], []byte("\n"))
	return string(line)
}

// Interpreters are the programs that a first line needs (§10.2): #!/bin/sh one, #!/usr/bin/env X two; none
// for what is no script.
func Interpreters(line string) []string {
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return nil
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return nil
	}
	needed := words[:1:1]
	if path.Base(words[0]) == "env" {
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
				return append(needed, w)
			}
		}
	}
	return needed
}
