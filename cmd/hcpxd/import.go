package main

import (
	"context"

	"hcpx/internal/cli"
	"hcpx/internal/imports"
	"hcpx/internal/protocol"
)

// importOpenAPI is `hcpx import openapi` (§15.6).
func importOpenAPI(ctx context.Context, o cli.ImportOptions) (cli.ImportReport, *protocol.Error) {
	report, err := imports.OpenAPI(ctx, imports.Options(o))
	return cli.ImportReport(report), err
}
