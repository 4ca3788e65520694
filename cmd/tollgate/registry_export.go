package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/registryjson"
	"github.com/tollgate-dev/tollgate/adapters/wholefile"
	"github.com/tollgate-dev/tollgate/wiring"
)

// exportMode is the file mode of an export, whose contents are public.
const exportMode = 0o644

func newRegistryExport(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Export every version of every server, including deleted ones",
		Long: "Write every version of every server, including deleted ones, ordered by name\n" +
			"and version, in the form that import reads: {\"servers\":[{\"server\",\"_meta\"}]}.\n" +
			"Without FILE the export goes to standard output. FILE must not exist unless\n" +
			"--force is given, and appears only when the export is complete. The service may\n" +
			"run meanwhile. The same registry always produces the same bytes.",
		Example: "  tollgate registry export backup.json\n" +
			"  tollgate registry export | gzip > backup.json.gz",
		Args: cobra.MaximumNArgs(1),
	}
	o := addOutput(c)
	force := addForce(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error {
			if len(args) == 0 || args[0] == registryjson.Stdin {
				_, err := exportRegistry(c, op, p.stdout)
				return err
			}
			var n int
			_, err := wholefile.Write(args[0], wholefile.Options{Mode: exportMode, Replace: *force}, func(f *os.File) (err error) {
				n, err = exportRegistry(c, op, f)
				return err
			})
			if err != nil {
				return fmt.Errorf("export: %w", suggestForce(args[0], err))
			}
			return o.printResult(p.stdout, table{
				header: []string{"FILE", "VERSIONS"},
				rows:   [][]string{{args[0], strconv.Itoa(n)}},
				value:  map[string]any{"file": args[0], "versions": n},
			})
		})
	}
	return c
}

func exportRegistry(c *cobra.Command, op *wiring.Operator, out io.Writer) (int, error) {
	w := registryjson.NewWriter(out)
	n, err := op.Transfer.Export(c.Context(), w.Write)
	if err != nil {
		return n, err
	}
	return n, w.Close()
}
