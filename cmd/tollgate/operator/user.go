package operator

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
)

func newUser(p cli.Process) *cobra.Command {
	c := cli.NewGroup("user", "Manage the people who may sign in", newUserAdd(p), newUserList(p), newUserShow(p),
		newUserSetPassword(p), newUserSetName(p), newUserSetPhone(p), newUserInviteAgain(p), newUserResetLink(p),
		newUserEnrolMFA(p), newUserBreakGlass(p))
	for _, change := range accountChanges() {
		c.AddCommand(newAccountChange(p, change))
	}
	return c
}

func newUserAdd(p cli.Process) *cobra.Command {
	var draft people.Person
	var email string
	var fromStdin bool
	c := &cobra.Command{
		Use:   "add --email E --name N",
		Short: "Add a person",
		Long: "Add a person who may sign in. If there is no database, the command creates it,\n" +
			"so you can add the first person before the first start of the service.\n\n" +
			"With --server the service invites the person, who sets the password at the link\n" +
			"that the command prints, and that the service sends by e-mail if it can.",
		Example: "  tollgate user add --email ada@example.com --name Ada\n" +
			"  printf '%s' \"$PASSWORD\" | tollgate user add --email ada@example.com --name Ada --password-stdin",
	}
	c.Flags().StringVar(&email, "email", "", "e-mail address that the person signs in with")
	c.Flags().StringVar(&draft.Name, "name", "", "the person's name")
	c.Flags().StringVar(&draft.Phone, "phone", "", "telephone number for SMS codes, for example +441632960961")
	c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	cli.RequireFlags(c, "email", "name")
	c.PreRunE = func(c *cobra.Command, _ []string) (err error) {
		draft.Email, err = auth.ParseEmail(email)
		switch remote := person.WantsService(p, c); {
		case err != nil:
		case remote && fromStdin:
			err = errors.New("--password-stdin: an invited person sets the password: leave it out with --server")
		case !remote:
			draft.Password, err = readPassword(c.Context(), p, fromStdin)
		}
		return err
	}
	return newFirstCommand(p, c, func(r run) (cli.Table, error) {
		a, err := r.People.Add(r.ctx, draft)
		return cli.RowTable(addedUserRow{a.ID, a.Email, a.Name}), err
	}, func(r run) (cli.Table, error) {
		var invited struct {
			addedUserRow

			Invitation struct {
				URL       string `json:"url"`
				ExpiresAt string `json:"expiresAt"`
				Delivered bool   `json:"delivered"`
			} `json:"invitation"`
		}
		body := map[string]string{"email": string(draft.Email), "name": draft.Name}
		err := r.send(http.MethodPost, at("people"), body, &invited)
		if err == nil && draft.Phone != "" {
			err = r.send(http.MethodPatch, at("people", string(invited.ID)), map[string]string{"phone": draft.Phone}, nil)
		}
		t := cli.RowTable(invited.addedUserRow)
		t.Header, t.Rows[0] = append(t.Header, "INVITATION"), append(t.Rows[0], whereIs(invited.Invitation.URL, invited.Invitation.Delivered))
		t.Value = invited
		return t, err
	})
}

// whereIs returns the address of a link, or where it went: the service gives no link to a token.
func whereIs(link string, delivered bool) string {
	switch {
	case link != "":
		return link
	case delivered:
		return "sent by e-mail"
	}
	return "not sent: sign in, and make another one"
}

// addedUserRow is a new person in the output of commands.
type addedUserRow struct {
	ID    auth.UserID `json:"id"    column:"ID"`
	Email auth.Email  `json:"email" column:"EMAIL"`
	Name  string      `json:"name"  column:"NAME"`
}

// readPassword reads the password of a person from standard input, or prompts for it.
func readPassword(ctx context.Context, p cli.Process, fromStdin bool) (auth.Password, error) {
	text, err := cli.ReadPassword(ctx, p, fromStdin)
	if err != nil {
		return auth.Password{}, err
	}
	return auth.NewPassword("password", text)
}
