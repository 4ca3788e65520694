package main

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/wiring"
)

// withPerson opens the records for a command on one person.
func withPerson(c *cobra.Command, p process, email string, do func(*wiring.Operator, auth.Account) error) error {
	address, err := auth.ParseEmail(email)
	if err != nil {
		return err
	}
	return withOperator(c, p, func(op *wiring.Operator) error {
		account, err := op.People.ByEmail(c.Context(), address)
		if err != nil {
			return notFound(err, "there is no user "+string(address))
		}
		return do(op, account)
	})
}
