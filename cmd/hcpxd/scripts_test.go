package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hcpx/internal/cli"
)

// programs are both, as an install has them: beside each other.
func programs() map[string]func() {
	return map[string]func(){
		"hcpx":  func() { os.Exit(cli.Process(nil, nil)) },
		"hcpxd": func() { os.Exit(run()) },
	}
}

func TestScripts(t *testing.T) {
	documents, err := filepath.Abs(filepath.Join("..", "..", "internal", "imports", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("HCP_HOME", filepath.Join(e.WorkDir, "store"))
			e.Setenv("DOCUMENTS", documents)
			return nil
		},
	})
}
