package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/exportfile"
	"github.com/tollgate-dev/tollgate/wiring"
)

func newRegistryExport(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write every version of every server, deleted ones too",
		Long: "Write every version of every server, deleted ones too, ordered by name and\n" +
			"version, in the form that import reads: {\"servers\":[{\"server\",\"_meta\"}]}. Without\n" +
			"FILE it goes to standard output. FILE is replaced when the export is whole.\n" +
			"The service may run meanwhile. The same registry makes the same bytes.",
		Example: "  tollgate registry export backup.json\n" +
			"  tollgate registry export | gzip > backup.json.gz",
		Args: cobra.MaximumNArgs(1),
	}
	o := addOutput(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error {
			if len(args) == 0 || args[0] == exportfile.Stdin {
				_, err := export(c, op, p.stdout)
				return err
			}
			var n int
			err := exportfile.WriteFile(args[0], func(w io.Writer) (err error) {
				n, err = export(c, op, w)
				return err
			})
			if err != nil {
				return fmt.Errorf("export: %w", err)
			}
			return o.print(p.stdout, table{
				header: []string{"FILE", "VERSIONS"},
				rows:   [][]string{{args[0], strconv.Itoa(n)}},
				value:  map[string]any{"file": args[0], "versions": n},
			})
		})
	}
	return c
}

func export(c *cobra.Command, op *wiring.Operator, out io.Writer) (int, error) {
	w := exportfile.NewWriter(out)
	n, err := op.Transfer.Export(c.Context(), w.Write)
	if err != nil {
		return n, err
	}
	return n, w.Close()
}
