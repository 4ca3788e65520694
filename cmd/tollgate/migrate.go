package main

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/wiring"
)

func newMigrate(p process) *cobra.Command {
	c := &cobra.Command{
		Use:     "migrate",
		Short:   "Bring the database to this version's schema",
		Long:    "Apply the migrations that the database lacks, under a lock, while other instances\nmay serve. The service does the same at its start unless MIGRATE_ON_START=false.",
		Example: "  DATABASE_URL=postgres://tollgate@localhost/tollgate tollgate migrate",
		Args:    cobra.NoArgs,
	}
	o := addOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := readSettings(p)
		if err != nil {
			return err
		}
		applied, err := wiring.Migrate(c.Context(), s)
		if err != nil {
			return err
		}
		rows := make([][]string, 0, len(applied))
		for _, name := range applied {
			rows = append(rows, []string{name})
		}
		return o.print(p.stdout, table{header: []string{"APPLIED"}, rows: rows, value: append([]string{}, applied...)})
	}
	return c
}
