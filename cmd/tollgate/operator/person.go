package operator

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/wiring"
)

// newPersonCommand completes a command that prints what find returns about one person.
func newPersonCommand(
	c *cobra.Command, p cli.Process, find func(context.Context, *wiring.Operator, auth.Account) (cli.Table, error),
) *cobra.Command {
	email := addEmail(c)
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withPerson(c, p, *email, func(op *wiring.Operator, a auth.Account) error {
			found, err := find(c.Context(), op, a)
			if err != nil {
				return err
			}
			return o.PrintResult(p.Stdout, found)
		})
	}
	return c
}

// withPerson opens the database for a command and calls do with the account of one person.
func withPerson(c *cobra.Command, p cli.Process, email string, do func(*wiring.Operator, auth.Account) error) error {
	address, err := auth.ParseEmail(email)
	if err != nil {
		return err
	}
	return withOperator(c, p, func(op *wiring.Operator) error {
		account, err := op.People.ByEmail(c.Context(), address)
		if err != nil {
			return replaceNotFound(err, "there is no user "+string(address))
		}
		return do(op, account)
	})
}

// addEmail adds the required flag --email.
func addEmail(c *cobra.Command) *string {
	email := c.Flags().String("email", "", "e-mail address of the person")
	cli.RequireFlags(c, "email")
	return email
}
