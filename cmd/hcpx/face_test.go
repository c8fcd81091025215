package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// §12.1: a link named after a pack is the pack's face; the real program, reached by it, runs and completes.
func Test_12_1_ALinkIsTheFaceOfItsPack(t *testing.T) {
	h := newHome(t)
	bin := filepath.Join(h.dir, "links")
	if out, err := h.command("face", "install", "linger", "--dir", bin).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, tt := range []struct {
		args []string
		want string
		exit int
	}{
		{[]string{"wait", "--seconds", "0", "--json"}, `{"ok":true,"pack_id":"linger","verb_key":"wait"`, 0},
		{[]string{"--json", "wait", "--secnds", "0"}, `the nearest is --seconds`, 64},
		{[]string{"wait", "--help"}, "linger wait --seconds 1", 0},
		{[]string{"__complete", "wait", "--s"}, "--seconds\n", 0},
	} {
		c := h.command(tt.args...)
		c.Path = filepath.Join(bin, "linger")
		c.Args[0] = c.Path
		out, _ := c.Output()
		if c.ProcessState.ExitCode() != tt.exit || !strings.Contains(string(out), tt.want) {
			t.Errorf("%v: %v %s", tt.args, c.ProcessState, out)
		}
	}
	if out, err := h.command("face", "remove", "linger", "--dir", bin).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if left, err := os.ReadDir(bin); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

// §6.8, §6.9: a signal ends a stream: each request that runs is answered as canceled, in order, and nothing of it stays
// alive; so does a reader that leaves.
func Test_6_8_WhatEndsAStream(t *testing.T) {
	h := newHome(t)
	for i, how := range []string{"SIGTERM", "SIGINT", "reader"} {
		t.Run(how, func(t *testing.T) {
			marks := []string{fmt.Sprintf("%d.%d1", 400000+os.Getpid(), i), fmt.Sprintf("%d.%d2", 400000+os.Getpid(), i)}
			if how == "reader" {
				marks[0] = "1" // this one ends, and nobody takes its answer
			}
			c := h.command("exec", "--stream", "--jobs", "3")
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			c.Stdout, c.Stderr = w, &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			_, _ = fmt.Fprintf(in, "{\"pack_id\":\"linger\",\"verb_key\":\"hide\"}\n")
			out := bufio.NewReader(r)
			if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "unknown_command") {
				t.Fatalf("%s %v", line, err)
			}
			for _, mark := range marks {
				_, _ = fmt.Fprintf(in, "{\"pack_id\":\"linger\",\"verb_key\":\"wait\",\"args\":{\"seconds\":%q}}\n", mark)
			}
			await(t, func() bool { return (how == "reader" || sleeping(t, marks[0]) == 2) && sleeping(t, marks[1]) == 2 }, errs.String)
			want := 2
			switch how {
			case "SIGTERM":
				err = c.Process.Signal(syscall.SIGTERM)
			case "SIGINT":
				err = c.Process.Signal(syscall.SIGINT)
			default:
				want, err = 0, r.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(out)
			if strings.Count(string(rest), `"code":"canceled"`) != want || strings.Count(string(rest), "\n") != want {
				t.Errorf("answered %s", rest)
			}
			_ = c.Wait()
			if c.ProcessState.ExitCode() != 1 || errs.Len() > 0 {
				t.Errorf("%v: %s", c.ProcessState, &errs)
			}
			for _, mark := range marks {
				if n := sleeping(t, mark); n != 0 && mark != "1" {
					t.Errorf("%d processes survive", n)
				}
			}
		})
	}
}
