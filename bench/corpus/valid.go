//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// judge ends the process: 0 for a valid document.
func judge(file string) {
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = false
	doc, err := loader.LoadFromFile(file)
	if err == nil {
		err = doc.Validate(context.Background(), openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation(),
			openapi3.DisableSchemaPatternValidation(), openapi3.AllowExtraSiblingFields("description", "summary"))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// verdicts are what the other reader said, kept in a file from run to run, for it is the slower of the two.
type verdicts struct {
	known map[string]string // "" for valid
	keep  *os.File          // nil: nothing is kept
}

func openVerdicts(name string) (*verdicts, error) {
	v := &verdicts{known: map[string]string{}}
	if name == "" {
		return v, nil
	}
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if file, verdict, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			v.known[file] = verdict
		}
	}
	v.keep, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return v, err
}

// of says whether a document is valid, and why not.
func (v *verdicts) of(file string) (bool, string, error) {
	name := filepath.ToSlash(file)
	verdict, known := v.known[name]
	if !known {
		var err error
		if verdict, err = independent(file); err != nil {
			return false, "", err
		}
		v.known[name] = verdict
		if v.keep != nil {
			if _, err := fmt.Fprintf(v.keep, "%s\t%s\n", name, verdict); err != nil {
				return false, "", err
			}
		}
	}
	return verdict == "", verdict, nil
}

// independent asks the other reader, in a process of its own.
func independent(file string) (verdict string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), validTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, self, "-valid", file).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "its validator took longer than " + validTime.String(), nil
	case err != nil:
		return "invalid: " + strings.ReplaceAll(firstLine(string(out)), "\t", " "), nil
	}
	return "", nil
}
