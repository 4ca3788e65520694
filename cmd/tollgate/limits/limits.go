// Package limits has the commands about rate limits: the rate limit service alone, and the check,
// explanation and simulation of rules.
package limits

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/runtimedir"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// NewCommand returns the command 'tollgate ratelimit'. serve runs the service with those parts.
func NewCommand(
	p cli.Process, serve func(context.Context, cli.Process, settings.Settings, settings.Parts) error,
) *cobra.Command {
	c := &cobra.Command{
		Use:   "ratelimit",
		Short: "Run the rate limit service alone",
		Long: "Run the rate limit service alone, as a replacement for the Envoy rate limit\n" +
			"service. HOST and PORT are the address of its HTTP listener, by default\n" +
			"0.0.0.0:8080.",
		Example: "  RUNTIME_ROOT=/srv/runtime_data/current tollgate ratelimit",
		Args:    cobra.NoArgs,
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := settings.ReadRatelimit(p.Environ)
		if err != nil {
			return err
		}
		return serve(c.Context(), p, s, settings.Parts{RateLimit: true})
	}
	c.AddCommand(newRatelimitCheck(p), newRatelimitExplain(p), newRatelimitSimulate(p))
	return c
}

// compileRules is runtimedir.Directory.Compile for a directory that a person names.
func compileRules(ctx context.Context, s settings.Settings, dir string) (*ruleset.Set, []string, error) {
	files := runtimedir.Config{Root: dir, IgnoreDotFiles: s.RuleFiles.IgnoreDotFiles}
	return runtimedir.New(files, nil).Compile(ctx, s.Rules) // only Watch writes to the log
}

func newRatelimitCheck(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "check DIR",
		Short: "Check the rate limit rules of a directory",
		Long: "Read all YAML files of a directory as the service would, and print each error\n" +
			"with file, line and column. The exit code is 1 if there is an error, or if\n" +
			"there is no YAML file. Files with other names are listed as warnings.",
		Example: "  tollgate ratelimit check docs/examples/ratelimit/config",
	}
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := settings.ReadRules(p.Environ)
		if err != nil {
			return err
		}
		set, warnings, err := compileRules(c.Context(), s, args[0])
		for _, w := range warnings {
			_, _ = fmt.Fprintf(p.Stderr, "warning: %s\n", w) // the check continues without it
		}
		if err != nil {
			return err
		}
		type row struct {
			Domain string `json:"domain" column:"DOMAIN"`
		}
		domains := each.Map(set.Domains(), func(d ratelimit.Domain) row { return row{string(d)} })
		if err := o.PrintResult(p.Stdout, cli.ListTable(domains)); err != nil {
			return err
		}
		// the exit code shows it too
		_, _ = fmt.Fprintf(p.Stderr, "%s, no errors\n", cli.FormatCount(set.RuleCount(), "rule", "rules"))
		return nil
	}
	return c
}
