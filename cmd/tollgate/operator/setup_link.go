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
