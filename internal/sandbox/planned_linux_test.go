package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wood is a directory with trees and programs for random Specs.
type wood struct {
	dirs, files, programs []string
}

func plant(t *testing.T) wood {
	t.Helper()
	root := t.TempDir()
	var w wood
	for i := range 6 {
		dir := filepath.Join(root, fmt.Sprintf("d%d", i), "deep")
		file, program, link := filepath.Join(dir, "file"), filepath.Join(dir, "program"), filepath.Join(root, fmt.Sprintf("link%d", i))
		for _, err := range []error{os.MkdirAll(dir, 0o755), os.WriteFile(file, nil, 0o644), os.WriteFile(program, nil, 0o755), os.Symlink(program, link)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		w.dirs, w.files, w.programs = append(w.dirs, dir, filepath.Dir(dir)), append(w.files, file), append(w.programs, program, link)
	}
	return w
}

func (w wood) some(r *rand.Rand, from ...[]string) []string {
	all := slices.Concat(from...)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:r.IntN(4)]
}

func (w wood) spec(r *rand.Rand) *Spec {
	programs := append(w.some(r, w.programs), w.programs[r.IntN(len(w.programs))])
	s := &Spec{UseDirs: w.some(r, w.dirs), Exec: w.some(r, w.dirs), Read: w.some(r, w.dirs, w.files), Write: w.some(r, w.dirs, w.files),
		Network: Network{Mode: []string{"", "none", "full"}[r.IntN(3)]}}
	for i, path := range programs {
		s.Uses = append(s.Uses, Program{Name: fmt.Sprintf("p%d", i), Path: path})
	}
	s.Program, s.Uses = s.Uses[0], s.Uses[1:]
	for i, path := range w.some(r, w.dirs, w.files) {
		s.Links = append(s.Links, Link{Target: path, HomeRel: fmt.Sprintf("l%d", i)})
	}
	return s
}

// may is what a list of accesses allows, path by path.
func may(list ...Access) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		for word, has := range map[string]bool{"r": a.Read, "w": a.Write, "x": a.Execute} {
			if has {
				all[word+" "+a.Path] = "yes"
			}
		}
	}
	return all
}

// §10.2, §15.1: whatever the Spec, what plan says a child may read, write and execute is what its rules are made from.
func Test_10_2_plan_and_rules_agree(t *testing.T) {
	trees := plant(t)
	scratch := filepath.Join(t.TempDir(), "scratch")
	s := New(Options{Scratch: scratch, Kernel: &Kernel{System: "linux/test", Supported: true, ABI: 7, Filter: true, Notify: true, CloseRange: true, Openat2: true}})
	if err := ownScratch(scratch); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(300) {
		spec := trees.spec(rand.New(rand.NewPCG(seed, 10)))
		w, refusal := newWorld(spec)
		if refusal != nil {
			t.Fatal(refusal)
		}
		p, err := newPrivate(scratch, spec)
		if err != nil {
			t.Fatal(err)
		}
		own, err := p.grants()
		if err != nil {
			t.Fatal(err)
		}
		var built []Access
		for _, part := range s.confine.rules(w, own) {
			built = append(built, accesses(part)...)
		}
		jail := s.Jail(spec, p.root)
		if diff := cmp.Diff(may(built...), may(slices.Concat(jail.Declared, jail.Own, jail.Base)...)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if err := p.release(); err != nil {
			t.Fatal(err)
		}
	}
}
