package main

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func newSettings(p process) *cobra.Command {
	c := &cobra.Command{
		Use:     "settings",
		Short:   "Print every setting with its default, meaning and present value",
		Long:    "Print every environment variable that the service reads, with its default, its\nmeaning and its present value. Secrets are masked.",
		Example: "  tollgate settings\n  tollgate settings --output json",
		Args:    cobra.NoArgs,
	}
	o := addOutput(c)
	c.RunE = func(*cobra.Command, []string) error {
		vars, err := settings.Describe(p.environ)
		if err != nil {
			return err
		}
		rows := make([][]string, 0, len(vars))
		for _, v := range vars {
			rows = append(rows, []string{v.Name, v.Default, v.Value, v.Meaning})
		}
		return o.print(p.stdout, table{header: []string{"VARIABLE", "DEFAULT", "VALUE", "MEANING"}, rows: rows, value: vars})
	}
	return c
}
