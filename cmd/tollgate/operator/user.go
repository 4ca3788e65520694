package operator

import (
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/wiring"
)

func newUser(p cli.Process) *cobra.Command {
	c := &cobra.Command{Use: "user", Short: "Manage the people who may sign in"}
	c.AddCommand(newUserAdd(p), newUserList(p), newUserShow(p), newUserSetPassword(p), newUserSetPhone(p),
		newUserEnrolMFA(p))
	for _, change := range accountChanges() {
		c.AddCommand(newUserChange(p, change))
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
		Args: cobra.NoArgs,
	}
	o := cli.AddOutput(c)
	c.Flags().StringVar(&email, "email", "", "e-mail address that the person signs in with")
	c.Flags().StringVar(&person.Name, "name", "", "the person's name")
	c.Flags().StringVar(&person.Phone, "phone", "", "telephone number for SMS codes, for example +441632960961")
	c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	cli.RequireFlags(c, "email", "name")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var err error
		if person.Email, err = auth.ParseEmail(email); err != nil {
			return err
		}
		password, err := cli.ReadPassword(c.Context(), p, fromStdin)
		if err != nil {
			return err
		}
		if person.Password, err = auth.NewPassword("password", password); err != nil {
			return err
		}
		return withCreatedOperator(c, p, func(op *wiring.Operator) error {
			a, err := op.People.Add(c.Context(), person)
			if err != nil {
				return err
			}
			return o.PrintResult(p.Stdout, cli.Table{
				Header: []string{"ID", "EMAIL", "NAME"},
				Rows:   [][]string{{string(a.ID), string(a.Email), a.Name}},
				Value:  map[string]string{"id": string(a.ID), "email": string(a.Email), "name": a.Name},
			})
		})
	}
	return c
}
