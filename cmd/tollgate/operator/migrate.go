package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
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
	c.AddCommand(newMigrateStatus(p))
	return newSettingsCommand(p, c, func(r run) (cli.Table, error) {
		applied, err := r.settings.Records.Migrate(r.ctx)
		t := cli.Table{Header: []string{"APPLIED"}, Value: append([]string{}, applied...)}
		for _, name := range applied {
			t.Rows = append(t.Rows, []string{name})
		}
		return t, err
	})
}

func newMigrateStatus(p cli.Process) *cobra.Command {
	return newSettingsCommand(p, &cobra.Command{
		Use:   "status",
		Short: "List applied and pending migrations",
		Long: "List the migrations of this version in order, with the time at which each was\n" +
			"applied to the database. The command changes nothing.",
		Example: "  tollgate migrate status",
	}, func(r run) (cli.Table, error) {
		steps, err := r.settings.Records.Migrations(r.ctx)
		return migrationTable(steps), err
	})
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
