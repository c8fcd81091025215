package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// faceOptions is one face (§12.1), or none for list.
type faceOptions struct {
	Pack, Dir string
	Force     bool
}

func newFaceCmd(d *deps) *cobra.Command {
	return family(text{
		use: "face", short: "Type the commands of a pack without hcpx before them", example: "hcpx face install git --force",
	}, newFaceInstallCmd(d, runFaceInstall), newFaceRemoveCmd(d, runFaceRemove), newFaceListCmd(d, runFaceList))
}

func newFaceInstallCmd(d *deps, run runner[faceOptions]) *cobra.Command {
	c, o := d.faceCmd(text{
		use: "install PACK", short: "Put a link named after a pack on PATH",
		long: "Then PACK WORDS… is hcpx PACK WORDS…. The link goes to ~/.local/bin, else beside hcpx, whichever is on PATH.\n" +
			"A file that is no link of hcpx is never replaced; a name that PATH has elsewhere takes --force.",
		example: "hcpx face install transit\nhcpx face install git --force --dir ~/bin",
	}, run)
	c.Flags().BoolVar(&o.Force, "force", false, "though PATH has a program of that name")
	return c
}

func newFaceRemoveCmd(d *deps, run runner[faceOptions]) *cobra.Command {
	c, _ := d.faceCmd(text{
		use: "remove PACK", short: "Take the link of a pack away", long: "Only links to this program are removed.", example: "hcpx face remove transit",
	}, run)
	return c
}

// faceCmd makes a command of one pack and a directory.
func (d *deps) faceCmd(t text, run runner[faceOptions]) (*cobra.Command, *faceOptions) {
	var o faceOptions
	c := command(t, operands(1, 1, "the id of a pack"), func(c *cobra.Command, args []string) error {
		o.Pack = args[0]
		return run(c.Context(), d, o)
	})
	c.Flags().SortFlags = false
	c.Flags().StringVar(&o.Dir, "dir", "", "in `DIR`")
	c.ValidArgsFunction = d.packIDs(1)
	return c, &o
}

func newFaceListCmd(d *deps, run runner[faceOptions]) *cobra.Command {
	return command(text{
		use: "list", short: "Show the links of packs on PATH", example: "hcpx face list",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, faceOptions{}) })
}

// request fills in where this program is: links lead to the core, whichever program was asked.
func (d *deps) faceRequest(o faceOptions) (lifecycle.FaceRequest, error) {
	r := lifecycle.FaceRequest{Pack: o.Pack, Dir: o.Dir, Force: o.Force}
	if d.env.Self == nil {
		return r, usage("face", "A link leads to a program, and this is none: type it in a shell")
	}
	self, err := d.env.Self()
	if err != nil {
		return r, broken("find this program", err)
	}
	if core := filepath.Join(filepath.Dir(self), "hcpx"); filepath.Base(self) == daemon {
		if _, err := os.Stat(core); err == nil {
			self = core
		}
	}
	r.Program = self
	if r.Dir != "" && !filepath.IsAbs(r.Dir) {
		if d.env.Dir == "" {
			return r, usage("face", "The directory is named by a relative path, and the working directory is gone")
		}
		r.Dir = filepath.Join(d.env.Dir, r.Dir)
	}
	return r, nil
}

func runFaceInstall(_ context.Context, d *deps, o faceOptions) error {
	r, err := d.faceRequest(o)
	if err != nil {
		return err
	}
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.FaceView, *protocol.Error) {
		return l.InstallFace(s, r)
	}, func(p *page, v lifecycle.FaceView) {
		word := "there already:"
		if v.Changed {
			word = "linked"
		}
		p.line("%s %s to %s", word, v.Path, v.Program)
		for _, n := range v.Notes {
			p.styled(warn, "note: %s", n)
		}
		p.next(v.PackID + " --help")
	})
}

func runFaceRemove(_ context.Context, d *deps, o faceOptions) error {
	r, err := d.faceRequest(o)
	if err != nil {
		return err
	}
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.FacesView, *protocol.Error) {
		return l.RemoveFace(s, r)
	}, func(p *page, v lifecycle.FacesView) {
		for _, f := range v.Faces {
			p.line("removed %s", f.Path)
		}
	})
}

func runFaceList(_ context.Context, d *deps, o faceOptions) error {
	r, err := d.faceRequest(o)
	if err != nil {
		return err
	}
	_, err = look(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.FacesView, *protocol.Error) {
		return l.Faces(s, r)
	}, func(p *page, v lifecycle.FacesView) {
		var rows [][]cell
		for _, f := range v.Faces {
			state := "installed"
			if !f.Installed {
				state = "not installed"
			}
			note := ""
			if len(f.Notes) > 0 {
				note = f.Notes[0]
			}
			rows = append(rows, row(f.PackID, state, f.Path, f.Program, note))
		}
		p.table([]string{"face", "pack", "link", "leads to", ""}, rows)
		p.next("hcpx face install PACK")
	})
	return err
}
