package examples_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"hcpx/examples"
)

// The tests here run the packs' own programs without a runtime: what they print for which arguments. That the
// runtime renders these arguments and holds the programs in their jail is tested with the runtime.

func TestEveryShippedPackIsNamed(t *testing.T) {
	entries, err := os.ReadDir("packs")
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, e := range entries {
		dirs = append(dirs, e.Name())
	}
	if !slices.Equal(dirs, examples.IDs()) {
		t.Errorf("packs has %v, IDs names %v", dirs, examples.IDs())
	}
	if _, err := examples.Pack("nothing"); err == nil {
		t.Error("an unknown pack is no error")
	}
	if _, err := examples.Pack("../examples"); err == nil {
		t.Error("a path is a pack")
	}
}

var update = flag.Bool("update", false, "make packs.zip anew")

// zipped is the archive of the directory packs. The time of a file does not go in.
func zipped(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	all := contents(t, os.DirFS("packs"))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := all[name]
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o644)
		if text[0] == 'x' {
			h.SetMode(0o755)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text[1:]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestEmbeddedPackIsItsDirectory: a copy of an embedded pack has the content and the executable bits (§2.4) of the
// directory in the repository.
func TestEmbeddedPackIsItsDirectory(t *testing.T) {
	if *update {
		if err := os.WriteFile("packs.zip", zipped(t), 0o644); err != nil {
			t.Fatal(err)
		}
		return // what is embedded in this test is the old one
	}
	for _, id := range examples.IDs() {
		t.Run(id, func(t *testing.T) {
			tree, err := examples.Pack(id)
			if err != nil {
				t.Fatal(err)
			}
			if err := fstest.TestFS(tree, "surface.json", "policy.json", "HARNESS.md"); err != nil {
				t.Error(err)
			}
			got, want := contents(t, tree), contents(t, os.DirFS(filepath.Join("packs", id)))
			if len(got) != len(want) {
				t.Errorf("%d files embedded, %d in the directory", len(got), len(want))
			}
			for name, text := range want {
				if got[name] != text {
					t.Errorf("%s differs; run go test ./examples -update", name)
				}
			}
		})
	}
}

// contents maps each file to its content, with a mark when it is executable.
func contents(t *testing.T, tree fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		mark := "-"
		if info.Mode()&0o111 != 0 {
			mark = "x"
		}
		all[name] = mark + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// tool is the program of one pack in a working directory.
type tool struct {
	t    *testing.T
	path string
	dir  string
	env  []string
	in   string // stdin
}

// newTool copies a pack out of the program and skips where the programs of this machine that it needs are missing.
func newTool(t *testing.T, id, program string, needs ...string) *tool {
	t.Helper()
	for _, n := range append(needs, "sh") {
		if _, err := exec.LookPath(n); err != nil {
			t.Skipf("%s is not on this machine", n)
		}
	}
	tree, err := examples.Pack(id)
	if err != nil {
		t.Fatal(err)
	}
	pack := filepath.Join(t.TempDir(), id)
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(pack, filepath.Dir(name)), 0o755))
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return errors.Join(os.MkdirAll(filepath.Join(pack, filepath.Dir(name)), 0o755),
			os.WriteFile(filepath.Join(pack, name), data, info.Mode()))
	})
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "TZ=UTC"}
	return &tool{t: t, path: filepath.Join(pack, "bin", program), dir: t.TempDir(), env: env}
}

// run gives stdout, the sentence on stderr and the exit code.
func (x *tool) run(args ...string) (stdout []byte, stderr string, code int) {
	x.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(x.path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = x.dir, append(slices.Clone(x.env), "TMPDIR="+x.t.TempDir()), &out, &errs
	cmd.Stdin = strings.NewReader(x.in)
	if err := cmd.Run(); err != nil {
		exit := new(exec.ExitError)
		if !errors.As(err, &exit) {
			x.t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.Bytes(), strings.TrimSpace(errs.String()), code
}

// json runs a command that must succeed with one JSON value.
func (x *tool) json(args ...string) map[string]any {
	x.t.Helper()
	out, errs, code := x.run(args...)
	if code != 0 {
		x.t.Fatalf("%q: exit %d: %s", args, code, errs)
	}
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		x.t.Fatalf("%q: %v in %s", args, err, out)
	}
	if d.More() {
		x.t.Fatalf("%q: more than one value: %s", args, out)
	}
	return v
}

// fails runs a command that must fail with a sentence that holds the words.
func (x *tool) fails(words string, args ...string) {
	x.t.Helper()
	out, errs, code := x.run(args...)
	if code == 0 {
		x.t.Errorf("%q succeeded: %s", args, out)
	}
	if !strings.Contains(errs, words) {
		x.t.Errorf("%q: %q does not say %q", args, errs, words)
	}
}

// dump is a value as compact JSON with sorted members.
func dump(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func unixTime(seconds int64) time.Time { return time.Unix(seconds, 0) }

// stamps is every file below dir with its size and time.
func stamps(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range files(t, dir) {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, name, info.Size(), info.ModTime().UnixNano())
	}
	return all.String()
}
