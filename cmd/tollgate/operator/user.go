package operator

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
)

func newUser(p cli.Process) *cobra.Command {
	c := cli.NewGroup("user", "Manage the people who may sign in", newUserAdd(p), newUserList(p), newUserShow(p),
		newUserSetPassword(p), newUserSetPhone(p), newUserEnrolMFA(p), newUserBreakGlass(p))
	for _, change := range accountChanges() {
		c.AddCommand(newAccountChange(p, change))
	}
	return c
}

func newUserAdd(p cli.Process) *cobra.Command {
	var person people.Person
	var email string
	var fromStdin bool
	c := &cobra.Command{
		Use:   "add --email E --name N",
		Short: "Add a person",
		Long: "Add a person who may sign in. If there is no database, the command creates it,\n" +
			"so you can add the first person before the first start of the service.",
		Example: "  tollgate user add --email ada@example.com --name Ada\n" +
			"  printf '%s' \"$PASSWORD\" | tollgate user add --email ada@example.com --name Ada --password-stdin",
	}
	c.Flags().StringVar(&email, "email", "", "e-mail address that the person signs in with")
	c.Flags().StringVar(&person.Name, "name", "", "the person's name")
	c.Flags().StringVar(&person.Phone, "phone", "", "telephone number for SMS codes, for example +441632960961")
	c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	cli.RequireFlags(c, "email", "name")
	c.PreRunE = func(c *cobra.Command, _ []string) (err error) {
		if person.Email, err = auth.ParseEmail(email); err == nil {
			person.Password, err = readPassword(c.Context(), p, fromStdin)
		}
		return err
	}
	return newFirstCommand(p, c, func(r run) (cli.Table, error) {
		a, err := r.People.Add(r.ctx, person)
		type row struct {
			ID    auth.UserID `json:"id"    column:"ID"`
			Email auth.Email  `json:"email" column:"EMAIL"`
			Name  string      `json:"name"  column:"NAME"`
		}
		return cli.RowTable(row{a.ID, a.Email, a.Name}), err
	})
}

// readPassword reads the password of a person from standard input, or prompts for it.
func readPassword(ctx context.Context, p cli.Process, fromStdin bool) (auth.Password, error) {
	text, err := cli.ReadPassword(ctx, p, fromStdin)
	if err != nil {
		return auth.Password{}, err
	}
	return auth.NewPassword("password", text)
}
