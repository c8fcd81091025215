package protect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkGuard is both looks around a command that does nothing, in workspaces of different size: the tree is not
// walked, so that they cost the same.
func BenchmarkGuard(b *testing.B) {
	for _, files := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("%d files", files), func(b *testing.B) {
			dir, err := filepath.EvalSymlinks(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			write := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			for i := range files {
				write(fmt.Sprintf("%s/repo/src/%d/%d.c", dir, i%100, i), "int x;\n")
			}
			for _, name := range []string{".git/HEAD", ".git/config", ".git/objects/x", ".git/hooks/pre-commit", "Makefile", "package.json", "AGENTS.md", ".vscode/settings.json"} {
				write(dir+"/repo/"+name, "some text\n")
			}
			var items []string
			for i := range files {
				items = append(items, indexItem(fmt.Sprintf("src/%d/%d.c", i%100, i), 0o100644, strings.Repeat("x", 20), "\x00"))
			}
			write(dir+"/repo/.git/index", indexOf(2, "", items...))
			for i := range 14 {
				write(fmt.Sprintf("%s/repo/.git/hooks/%d.sample", dir, i), "sample\n")
			}
			b.ResetTimer()
			for i := range b.N {
				g, err := Begin(context.Background(), Watch{Home: dir + "/store", Run: strconv.Itoa(i), Root: dir + "/repo"})
				if err != nil {
					b.Fatal(err)
				}
				if changes, err := g.End(); err != nil || changes != nil {
					b.Fatal(changes, err)
				}
			}
		})
	}
}
