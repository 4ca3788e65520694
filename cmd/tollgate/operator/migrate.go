package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

func newMigrate(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Apply this version's migrations to the database",
		Long: "Apply the migrations that the database lacks, under a lock. Other instances can\n" +
			"serve requests meanwhile. The service does the same at its start unless\n" +
			"MIGRATE_ON_START=false.",
		Example: "  DATABASE_URL=postgres://tollgate@localhost/tollgate tollgate migrate",
		Args:    cobra.NoArgs,
	}
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := settings.Read(p.Environ)
		if err != nil {
			return err
		}
		applied, err := s.Records.Migrate(c.Context())
		if err != nil {
			return err
		}
		rows := make([][]string, 0, len(applied))
		for _, name := range applied {
			rows = append(rows, []string{name})
		}
		return o.PrintResult(p.Stdout, cli.Table{
			Header: []string{"APPLIED"}, Rows: rows, Value: append([]string{}, applied...),
		})
	}
	c.AddCommand(newMigrateStatus(p))
	return c
}

func newMigrateStatus(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "List applied and pending migrations",
		Long: "List the migrations of this version in order, with the time at which each was\n" +
			"applied to the database. The command changes nothing.",
		Example: "  tollgate migrate status",
		Args:    cobra.NoArgs,
	}
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := settings.Read(p.Environ)
		if err != nil {
			return err
		}
		steps, err := s.Records.Migrations(c.Context())
		if err != nil {
			return err
		}
		return o.PrintResult(p.Stdout, migrationTable(steps))
	}
	return c
}

func migrationTable(steps []database.Step) cli.Table {
	type row struct {
		Name      string `json:"name"                column:"MIGRATION"`
		State     string `json:"state"               column:"STATE"`
		AppliedAt string `json:"appliedAt,omitempty" column:"APPLIED AT"`
	}
	return cli.TableOf(steps, func(s *database.Step) row {
		state := "applied"
		if s.AppliedAt.IsZero() {
			state = "pending"
		}
		return row{s.Name, state, cli.FormatTime(s.AppliedAt)}
	})
}
