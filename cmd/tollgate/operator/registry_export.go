package operator

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/registryjson"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

func newRegistryExport(p cli.Process) *cobra.Command {
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
	o := cli.AddOutput(c)
	force := addForce(c)
	return newDatabaseCommand(p, c, func(r run) error {
		if len(r.args) == 0 || r.args[0] == registryjson.Stdin {
			w := registryjson.NewWriter(p.Stdout)
			if _, err := r.Transfer.Export(r.ctx, w.Write); err != nil {
				return err
			}
			return w.Close()
		}
		var n int
		err := registryjson.WriteFile(r.args[0], *force, func(w *registryjson.Writer) (err error) {
			n, err = r.Transfer.Export(r.ctx, w.Write)
			return err
		})
		if err != nil {
			return fmt.Errorf("export: %w", suggestForce(r.args[0], err))
		}
		type row struct {
			File     string `json:"file"     column:"FILE"`
			Versions int    `json:"versions" column:"VERSIONS"`
		}
		return o.PrintResult(p.Stdout, cli.RowTable(row{r.args[0], n}))
	})
}
