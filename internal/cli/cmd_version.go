package cli

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionView says which build this is.
type versionView struct {
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Commit   string `json:"commit,omitempty"`
}

type versionOptions struct{}

func newVersionCmd(d *deps, run runner[versionOptions]) *cobra.Command {
	return command(text{
		use: "version", short: "Show the version of this program and of the protocol", example: "hcpx version",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, versionOptions{}) })
}

func runVersion(_ context.Context, d *deps, _ versionOptions) error {
	v := buildVersion()
	return d.show(v, func(p *page) {
		line := "hcpx " + v.Version + " (HCP/" + v.Protocol + ", " + v.Go + ", " + v.Platform
		if v.Commit != "" {
			line += ", " + v.Commit
		}
		p.raw(line + ")\n")
	})
}

// buildVersion reads what the Go toolchain wrote into the binary.
func buildVersion() versionView {
	v := versionView{Version: "devel", Protocol: "1.1", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
