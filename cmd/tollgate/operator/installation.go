package operator

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/pluginhost"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/people"
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

func newBackup(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the SQLite database into a file while the service runs",
		Long: "Copy a consistent snapshot of the SQLite database to FILE. FILE must not exist\n" +
			"unless --force is given. The service can read and write during the backup. To\n" +
			"restore, replace tollgate.db in DATA_DIR with FILE. FILE contains password\n" +
			"hashes and encrypted secrets; only its owner can read it. For PostgreSQL use\n" +
			"pg_dump.",
		Example: "  tollgate backup tollgate-backup.db",
	}
	force := addForce(c)
	return newSettingsCommand(p, c, func(r run) (cli.Table, error) {
		file := r.args[0]
		if file == "" { // as a path it would be the working directory
			return cli.Table{}, errors.New("the name of FILE is empty")
		}
		size, err := r.settings.Records.WriteBackup(r.ctx, file, *force)
		type row struct {
			File  string `json:"file"  column:"FILE"`
			Bytes int64  `json:"bytes" column:"BYTES"`
		}
		return cli.RowTable(row{file, size}), suggestForce(file, err)
	})
}

func newPlugins(p cli.Process) *cobra.Command {
	return newSettingsCommand(p, &cobra.Command{
		Use:     "plugins",
		Short:   "List the plugins and check each one by starting it",
		Example: "  tollgate plugins --output json",
	}, func(r run) (cli.Table, error) {
		found, err := pluginhost.Inspect(r.ctx, r.settings.Plugins, pluginhost.CourierConfig{
			Email: r.settings.Couriers.Email, SMS: r.settings.Couriers.SMS,
		}, operatorLog(r.settings, p))
		if err == nil && len(found) == 0 {
			// the empty table shows it too
			_, _ = fmt.Fprintf(p.Stderr, "There is no plugin in %s (PLUGIN_DIR).\n", r.settings.Plugins.Dir)
		}
		return pluginTable(found), err
	})
}

func pluginTable(plugins []pluginhost.Status) cli.Table {
	type row struct {
		Name      string `json:"name"                column:"NAME"`
		Kind      string `json:"kind"                column:"KIND"`
		Version   string `json:"version,omitempty"   column:"VERSION"`
		State     string `json:"state"               column:"STATE"`
		Restarts  int    `json:"restarts"            column:"RESTARTS"`
		LastError string `json:"lastError,omitempty" column:"LAST ERROR"`
	}
	return cli.TableOf(plugins, func(s *pluginhost.Status) row {
		return row{s.Name, s.Kind, s.Version, string(s.State), s.Restarts, s.LastError}
	})
}

func newSetupLink(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "setup-link",
		Short: "Print the address on which the first account is made",
		Long: "Print a new address of the page on which the first account is made, like the one\n" +
			"that 'tollgate serve' logs. It is good for 24 hours, until there is an account.\n" +
			"Who opens it becomes the operator of the service.",
		Example: "  tollgate setup-link",
	}
	return newFirstCommand(p, c, func(r run) (cli.Table, error) {
		link, err := r.People.MakeSetupLink(r.ctx)
		return cli.RowTable(newLinkRow(link)), err
	})
}

// linkRow is a link for a person in the output of commands.
type linkRow struct {
	URL       string `json:"url"       column:"ADDRESS"`
	ExpiresAt stamp  `json:"expiresAt" column:"EXPIRES"`
}

func newLinkRow(l people.Link) linkRow { return linkRow{l.URL, formatOptionalTime(l.ExpiresAt)} }

// invitationRow is the link of an invitation in the output of commands.
type invitationRow struct {
	URL       string `json:"url"       column:"ADDRESS"`
	ExpiresAt stamp  `json:"expiresAt" column:"EXPIRES"`
	Delivered bool   `json:"delivered" column:"DELIVERED"`
}

func newInvitationRow(l people.Link) invitationRow {
	return invitationRow{l.URL, formatOptionalTime(l.ExpiresAt), l.Delivered}
}
