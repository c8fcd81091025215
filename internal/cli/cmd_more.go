package cli

import "github.com/spf13/cobra"

// Commands that prove something: conformance (§14.3) and demo.

type conformanceOptions struct{ Vectors []string }

func newConformanceCmd(d *deps, run runner[conformanceOptions]) *cobra.Command {
	var o conformanceOptions
	c := command(text{
		use: "conformance [--vector NAME]", short: "Run the published vectors against this runtime",
		long:    "Everything happens in a temporary store. Exit 1 when a vector fails.",
		example: "hcpx conformance\nhcpx conformance --vector exec.transit.plan --json",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, o) })
	c.Flags().StringArrayVar(&o.Vectors, "vector", nil, "run only the vector `NAME`")
	return c
}

type demoOptions struct{}

func newDemoCmd(d *deps, run runner[demoOptions]) *cobra.Command {
	return command(text{
		use: "demo", short: "Show the whole way of a pack in a temporary store, each envelope visible",
		long: "It makes a temporary store, a git repository and the https git server that is its origin. A person commits; an\n" +
			"agent reads a README that asks it to leak, its tries are refused, its push asks the person, who sees the commits,\n" +
			"and happens once; the audit is verified, and everything removed. Exit 1 when something is not as expected.",
		example: "hcpx demo\nhcpx demo --json",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, demoOptions{}) })
}
