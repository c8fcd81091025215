//go:build unix

// Command corpus imports many OpenAPI documents, each in a process of its own, and says which of them do not become a
// pack that lints clean, by cause (§15.6). `./dev corpus` gets the documents and runs it; nothing of them is kept.
//
// A document is valid when an independent reader (kin-openapi) loads it without leaving it and finds nothing against its
// version of the standard; its own examples and defaults aside, for they are no part of a request. That reader, too,
// gets a process and a bound.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"time"
)

// The bounds of one import: what passes them counts as a failure.
const (
	importTime = 30 * time.Second
	importRSS  = 1 << 20 // kB
	validTime  = 4 * time.Minute
)

// standIn is the server of a document that names none that a pack may have.
const standIn = "https://corpus.example.org"

func main() {
	hcpxd := flag.String("hcpxd", "bin/hcpxd", "the program that imports")
	valid := flag.String("valid", "", "judge this one document and end")
	every := flag.Int("every", 1, "take each n-th document")
	verdicts := flag.String("verdicts", "", "keep in this file what the other reader said, for the next run")
	alone := flag.Bool("judge", false, "ask the other reader alone")
	flag.Parse()
	if *valid != "" {
		judge(*valid)
	}
	if err := run(job{*hcpxd, *verdicts, *every, *alone}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

// result is what became of one document.
type result struct {
	file    string
	size    int64
	valid   bool
	invalid string // why not
	server  bool   // the stand-in was needed
	cause   string // "" for a pack that lints clean
	warned  map[string]int
	seconds float64
	rss     int64 // kB
	packed  int64 // bytes of the pack
	left    int
	made    int // commands
}

// job is what a run does.
type job struct {
	hcpxd, verdicts string
	every           int
	alone           bool
}

func run(j job, dirs []string) error {
	files, err := documents(dirs)
	if err != nil {
		return err
	}
	said, err := openVerdicts(j.verdicts)
	if err != nil {
		return err
	}
	defer said.keep.Close()
	var all []result
	for i := 0; i < len(files); i += j.every {
		r := result{file: files[i]}
		if !j.alone {
			r = importOne(j.hcpxd, files[i])
		}
		if r.valid, r.invalid, err = said.of(files[i]); err != nil {
			return err
		}
		all = append(all, r)
		if len(all)%50 == 0 {
			fmt.Fprintf(os.Stderr, "%d of %d\n", i+1, len(files))
		}
	}
	if !j.alone {
		report(all)
	}
	return nil
}

// documents are the OpenAPI 3 documents below the directories.
func documents(dirs []string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".json" && d.Name() != "package.json" {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is no document in " + strings.Join(dirs, ", "))
	}
	return out, nil
}

// importOne imports and lints a document, with the stand-in when it names no server.
func importOne(hcpxd, file string) result {
	r := result{file: file, warned: map[string]int{}}
	if info, err := os.Stat(file); err == nil {
		r.size = info.Size()
	}
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		r.cause = "the corpus itself: " + err.Error()
		return r
	}
	defer os.RemoveAll(dir)
	args := []string{"import", "openapi", file, "--json", "--home", filepath.Join(dir, "home"), "--out", filepath.Join(dir, "pack")}
	answer := r.start(hcpxd, args)
	if answer.Error.Details.Reason == "no-server" {
		r.server, r.cause = true, ""
		answer = r.start(hcpxd, append(args, "--server", standIn))
	}
	r.left, r.made = len(answer.Left), answer.Read+answer.Write
	if r.cause != "" {
		return r
	}
	named := filepath.Join(dir, answer.ID)
	if err := os.Rename(filepath.Join(dir, "pack"), named); err != nil && answer.ID != "pack" {
		r.cause = "the pack is not where it was said to be"
		return r
	}
	r.packed = sizeOf(named)
	for _, issue := range r.start(hcpxd, []string{"lint", named, "--json", "--home", filepath.Join(dir, "home")}).Issues {
		if issue.Severity == "error" {
			r.cause = "lint: " + issue.Code
		} else {
			r.warned[issue.Code]++
		}
	}
	return r
}

// answer is what is read of the JSON that hcpx prints.
type answer struct {
	ID    string   `json:"pack_id"`
	Left  []string `json:"left_out"`
	Read  int      `json:"read"`
	Write int      `json:"write"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Details struct {
			Reason string `json:"reason"`
			Issues []struct{ Code, Message string }
		} `json:"details"`
	} `json:"error"`
	Issues []struct{ Code, Severity string } `json:"issues"`
}

// start runs one process within its bounds and notes what it cost and how it failed.
func (r *result) start(program string, args []string) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), importTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	err := cmd.Run()
	r.seconds = max(r.seconds, time.Since(began).Seconds())
	if cmd.ProcessState != nil {
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			r.rss = max(r.rss, usage.Maxrss)
		}
	}
	switch {
	case ctx.Err() != nil:
		r.cause = "longer than " + importTime.String()
	case json.Unmarshal(out.Bytes(), &a) != nil:
		r.cause = "crash: " + firstLine(errs.String())
	case a.Error.Code != "" && len(a.Error.Details.Issues) > 0:
		r.cause = "lint at import: " + a.Error.Details.Issues[0].Code + ": " + firstLine(a.Error.Details.Issues[0].Message)
	case a.Error.Code != "":
		r.cause = a.Error.Code + " " + a.Error.Details.Reason
	case err != nil && args[0] != "lint":
		r.cause = "exit without a reason: " + err.Error()
	case r.rss > importRSS:
		r.cause = "more than 1 GiB"
	}
	return a
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line[:min(len(line), 160)]
}

func sizeOf(dir string) (total int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}

// report prints the totals and every failure by cause.
func report(all []result) {
	var valid, clean, validClean, server, warned, left, made int
	var longest, largest result
	var sizes, packs int64
	causes := map[string][]result{}
	warnings := map[string]int{}
	for _, r := range all {
		if r.valid {
			valid++
		}
		if r.cause == "" {
			clean++
			sizes, packs = sizes+r.size, packs+r.packed
			if r.valid {
				validClean++
			}
		} else {
			causes[r.cause] = append(causes[r.cause], r)
		}
		if r.server {
			server++
		}
		if len(r.warned) > 0 {
			warned++
		}
		for code, n := range r.warned {
			warnings[code] += n
		}
		left, made = left+r.left, made+r.made
		if r.seconds > longest.seconds {
			longest = r
		}
		if r.rss > largest.rss {
			largest = r
		}
	}
	fmt.Printf("%d documents, %d of them valid\n", len(all), valid)
	fmt.Printf("%d imported and lint clean; of the valid ones %d, %.2f %%\n", clean, validClean, 100*float64(validClean)/float64(max(valid, 1)))
	fmt.Printf("%d with a stand-in server, %d with warnings %v\n", server, warned, warnings)
	fmt.Printf("%d commands, %d operations or parameters left out\n", made, left)
	fmt.Printf("documents of %d bytes became packs of %d\n", sizes, packs)
	fmt.Printf("longest %.1f s: %s\nmost memory %d MB: %s\n", longest.seconds, longest.file, largest.rss>>10, largest.file)
	names := make([]string, 0, len(causes))
	for c := range causes {
		names = append(names, c)
	}
	sort.Strings(names)
	for _, c := range names {
		fmt.Printf("\n%s: %d\n", c, len(causes[c]))
		slices.SortFunc(causes[c], func(a, b result) int { return strings.Compare(a.file, b.file) })
		for _, r := range causes[c] {
			judged := "valid"
			if !r.valid {
				judged = r.invalid
			}
			fmt.Printf("  %s (%s)\n", r.file, judged)
		}
	}
}
