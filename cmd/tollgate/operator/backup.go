package operator

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/wiring/settings"
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
	o := cli.AddOutput(c)
	force := addForce(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if args[0] == "" { // as a path it would be the working directory
			return errors.New("the name of FILE is empty")
		}
		s, err := settings.Read(p.Environ)
		if err != nil {
			return err
		}
		size, err := s.Records.WriteBackup(c.Context(), args[0], *force)
		if err != nil {
			return suggestForce(args[0], err)
		}
		return o.PrintResult(p.Stdout, cli.Table{
			Header: []string{"FILE", "BYTES"},
			Rows:   [][]string{{args[0], strconv.FormatInt(size, 10)}},
			Value:  map[string]any{"file": args[0], "bytes": size},
		})
	}
	return c
}
