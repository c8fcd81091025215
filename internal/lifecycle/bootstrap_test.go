package lifecycle

import (
	"testing"

	"hcpx/internal/lint"
	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

func TestHCP_11_4_BootstrapPackFollowsEveryRule(t *testing.T) {
	src, err := Bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	p, _ := pack.Load(src, pack.Limits{})
	if got := pack.Digest(p.Files); got != BootstrapDigest {
		t.Fatalf("BootstrapDigest is not that of the embedded files: %s", got)
	}
	if p.Manifest.Version != bootstrapVersion || p.Manifest.Plane != "runtime" || p.Manifest.Binding.Mode != "local" {
		t.Errorf("version %s, plane %s, binding %s", p.Manifest.Version, p.Manifest.Plane, p.Manifest.Binding.Mode)
	}
	issues, refusal := lint.Run([]lint.Source{{Dir: "hcp-cli", Name: "hcp-cli", FS: src}}, lint.Options{BootstrapDigest: BootstrapDigest})
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, i := range issues {
		t.Errorf("%s:%d:%d %s %s", i.File, i.Line, i.Column, i.Code, i.Message)
	}
	issues, refusal = lint.Run([]lint.Source{{Dir: "hcp-cli", Name: "hcp-cli", FS: src}}, lint.Options{})
	if refusal != nil || !protocol.HasErrors(issues) {
		t.Error("the reserved id passes without the embedded digest")
	}
}
