package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/wiring"
)

func newBackup(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the SQLite database into a file while the service runs",
		Long: "Copy the SQLite database, as it is at one moment, to FILE. FILE must not exist\n" +
			"unless --force is given. The service continues to read and write meanwhile. To\n" +
			"restore, replace tollgate.db in DATA_DIR with FILE. FILE contains password\n" +
			"hashes and encrypted secrets, and only its owner may read it. For PostgreSQL\n" +
			"use pg_dump.",
		Example: "  tollgate backup tollgate-backup.db",
		Args:    cobra.ExactArgs(1),
	}
	o := addOutput(c)
	force := addForce(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if args[0] == "" { // which would stand for the folder that the command runs in
			return errors.New("the name of FILE is empty")
		}
		s, err := readSettings(p)
		if err != nil {
			return err
		}
		size, err := wiring.Backup(c.Context(), s, args[0], *force)
		if err != nil {
			return offerForce(err)
		}
		return o.print(p.stdout, table{
			header: []string{"FILE", "BYTES"},
			rows:   [][]string{{args[0], strconv.FormatInt(size, 10)}},
			value:  map[string]any{"file": args[0], "bytes": size},
		})
	}
	return c
}
