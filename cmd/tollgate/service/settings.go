package service

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func newSettings(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "settings",
		Short: "Print every setting with its default, meaning and current value",
		Long: "Print every environment variable that the service reads, with its current value,\n" +
			"its default if that is different, and its meaning. The JSON output also contains\n" +
			"the form of the value. Secrets are masked.",
		Example: "  tollgate settings\n  tollgate settings --output json",
	}
	o := cli.AddOutput(c)
	c.RunE = func(*cobra.Command, []string) error {
		vars, err := settings.Describe(p.Environ)
		if err != nil {
			return err
		}
		rows := each.Map(vars, func(v settings.Variable) []string {
			return []string{v.Name, v.Value, otherDefault(v), v.Meaning}
		})
		return o.PrintResult(p.Stdout, cli.Table{
			Header: []string{"VARIABLE", "VALUE", "DEFAULT", "MEANING"}, Rows: rows, Value: vars,
		})
	}
	return c
}

// otherDefault returns the default of a variable if its value is different.
func otherDefault(v settings.Variable) string {
	switch v.Default {
	case v.Value:
		return ""
	case "":
		return "(none)"
	}
	return v.Default
}
