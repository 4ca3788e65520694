package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
)

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
		type row struct {
			URL       string `json:"url"       column:"ADDRESS"`
			ExpiresAt string `json:"expiresAt" column:"EXPIRES"`
		}
		return cli.RowTable(row{link.URL, cli.FormatTime(link.ExpiresAt)}), err
	})
}
