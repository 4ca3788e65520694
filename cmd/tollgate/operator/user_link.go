package operator

import (
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/people"
)

func newUserInviteAgain(p cli.Process) *cobra.Command {
	return newUserLink(p, &cobra.Command{
		Use:   "invite-again --email E",
		Short: "Invite a person again and print the link",
		Long: "Make a new invitation for a person who has not accepted one, and print its link,\n" +
			"this once. With --server the service also sends it by e-mail if it can, and\n" +
			"DELIVERED says whether it did; a token gets no link, which is sent only. Links\n" +
			"that were made before end.",
		Example: "  tollgate user invite-again --email grace@example.com",
	}, "invitation", newInvitationRow)
}

func newUserResetLink(p cli.Process) *cobra.Command {
	return newUserLink(p, &cobra.Command{
		Use:   "reset-link --email E",
		Short: "Print a link by which a person sets a new password",
		Long: "Make a link by which a person who forgot the password sets a new one, and print\n" +
			"it, this once, to hand over. It is good once and for 30 minutes. With --server\n" +
			"and a token it is sent to the person by e-mail, and not printed.",
		Example: "  tollgate user reset-link --email ada@example.com",
	}, "reset-link", newLinkRow)
}

// newUserLink completes a command that makes a link for a person and prints it as a row. path is the
// last part of its path in the API.
func newUserLink[R any](p cli.Process, c *cobra.Command, path string, row func(people.Link) R) *cobra.Command {
	return newPersonCommand(p, c, func(r run, a shownPerson) (cli.Table, error) {
		var link struct {
			URL       string
			ExpiresAt time.Time
			Delivered bool
		}
		err := r.send(http.MethodPost, at("people", a.ID, path), nil, &link)
		return cli.RowTable(row(people.Link{
			URL: whereIs(link.URL, link.Delivered), ExpiresAt: link.ExpiresAt, Delivered: link.Delivered,
		})), err
	})
}

func newUserSetName(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:     "set-name --email E --name N",
		Short:   "Change a person's name",
		Example: "  tollgate user set-name --email ada@example.com --name 'Ada Lovelace'",
	}
	name := c.Flags().String("name", "", "the person's name")
	cli.RequireFlags(c, "name")
	return newPersonCommand(p, c, changedPerson(http.MethodPatch, "", func() any { return map[string]string{"name": *name} }))
}
