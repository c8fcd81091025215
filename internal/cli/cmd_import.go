package cli

import "github.com/spf13/cobra"

// ImportOptions are what a document is imported with (§15.6).
type ImportOptions struct {
	Source, Out, ID, Server, ClientID string
	Include, Exclude                  []string
	Force                             bool
}

// ImportReport is what became of it.
type ImportReport struct {
	ID         string   `json:"pack_id"`
	Version    string   `json:"version"`
	Dir        string   `json:"dir"`
	Server     string   `json:"server"`
	Credential string   `json:"credential"`
	Read       int      `json:"read"`
	Write      int      `json:"write"`
	Left       []string `json:"left_out"`
	Decide     []string `json:"to_decide"`
}

// newImportCmd holds what makes a pack of a description that somebody else wrote (§15.6).
func newImportCmd(d *deps) *cobra.Command {
	return family(text{
		use: "import", short: "Make a pack of what somebody else described", example: "hcpx import openapi ./petstore.yaml",
	}, newImportOpenAPICmd(d, runImportOpenAPI))
}

func newImportOpenAPICmd(d *deps, run runner[ImportOptions]) *cobra.Command {
	var o ImportOptions
	c := command(text{
		use: "openapi FILE|URL", short: "Make a pack of an OpenAPI 3.0 or 3.1 document",
		long: "Each operation becomes a command: GET and HEAD a read, every other a write that asks first. The pack lints clean, and\n" +
			"says what a person must still decide. A choice is tag:NAME, path:/GLOB, method:GET or operation:ID, where * stands for\n" +
			"anything; of several includes those of one kind add up, and those of different kinds must all fit.",
		example: "hcpx import openapi ./petstore.yaml\n" +
			"hcpx import openapi https://api.example.org/openapi.json --include tag:orders --exclude method:DELETE\n" +
			"hcpx import openapi ./api.json --id shop --server https://shop.example.org/v2 --out packs/shop",
	}, operands(1, 1, "a file or an address"), func(c *cobra.Command, args []string) error {
		o.Source = args[0]
		return run(c.Context(), d, o)
	})
	c.ValidArgsFunction = nil // files
	f := c.Flags()
	f.StringVar(&o.Out, "out", "", "write the pack to `DIR`; else to ./ID")
	f.StringVar(&o.ID, "id", "", "the pack's `ID`; else one of the document's title")
	f.StringVar(&o.Server, "server", "", "call the API at `URL`; else at the document's first server with https")
	f.StringArrayVar(&o.Include, "include", nil, "take the operations of this `CHOICE` alone; may be given again")
	f.StringArrayVar(&o.Exclude, "exclude", nil, "leave the operations of this `CHOICE` out; may be given again")
	f.StringVar(&o.ClientID, "client-id", "", "sign in by OAuth 2.0 as the client `ID`, which you have registered there")
	f.BoolVar(&o.Force, "force", false, "replace a pack that import wrote")
	return c
}
