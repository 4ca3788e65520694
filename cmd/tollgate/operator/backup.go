package operator

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

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
		Args:    cobra.ExactArgs(1),
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
