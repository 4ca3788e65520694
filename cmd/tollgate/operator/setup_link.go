package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/people"
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
		return linkTable(link), err
	})
}

// linkRow is a link for a person in the output of commands.
type linkRow struct {
	URL       string `json:"url"       column:"ADDRESS"`
	ExpiresAt stamp  `json:"expiresAt" column:"EXPIRES"`
}

func linkTable(l people.Link) cli.Table {
	return cli.RowTable(linkRow{l.URL, formatOptionalTime(l.ExpiresAt)})
}
