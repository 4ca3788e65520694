package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/wiring"
)

// userPage is how many accounts are read at once.
const userPage = 500

// change is one thing an operator does to an account.
type change struct {
	use, short, long string
	do               func(context.Context, *wiring.Operator, auth.Email) error
}

// changes are those that need no more than the person's address.
func changes() []change {
	return []change{
		{"lock", "Keep a person from signing in", "Keep a person from signing in until 'user unlock'. Living sessions stay.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error { return op.People.Lock(ctx, e) }},
		{"unlock", "End the locks of a person", "End the lock of an operator, and those that failed sign-ins led to.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error { return op.People.Unlock(ctx, e) }},
		{"disable", "Shut a person out", "End a person's sessions, and answer their logins as those of an unknown person.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error { return op.People.Disable(ctx, e) }},
		{"enable", "Let a disabled person sign in again", "Let a disabled person sign in again.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error { return op.People.Enable(ctx, e) }},
		{"disable-mfa", "Take a person's authenticator away", "Take a person's authenticator and recovery codes away, for those who lost both.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error {
				return op.People.DisableMFA(ctx, e)
			}},
	}
}

func newUserChange(p process, what change) *cobra.Command {
	c := &cobra.Command{
		Use:     what.use + " --email E",
		Short:   what.short,
		Long:    what.long,
		Example: "  tollgate user " + what.use + " --email ada@example.com",
		Args:    cobra.NoArgs,
	}
	email := addEmail(c)
	o := addOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return changeUser(c, p, o, *email, what.do)
	}
	return c
}

func newUserSetPassword(p process) *cobra.Command {
	var fromStdin bool
	c := &cobra.Command{
		Use:     "set-password --email E",
		Short:   "Set a person's password and end their sessions",
		Example: "  printf '%s' \"$PASSWORD\" | tollgate user set-password --email ada@example.com --password-stdin",
		Args:    cobra.NoArgs,
	}
	email := addEmail(c)
	o := addOutput(c)
	c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	c.RunE = func(c *cobra.Command, _ []string) error {
		text, err := readPassword(c.Context(), p, fromStdin)
		if err != nil {
			return err
		}
		password, err := auth.NewPassword("password", text)
		if err != nil {
			return err
		}
		return changeUser(c, p, o, *email, func(ctx context.Context, op *wiring.Operator, e auth.Email) error {
			return op.People.SetPassword(ctx, e, password)
		})
	}
	return c
}

func newUserSetPhone(p process) *cobra.Command {
	var phone string
	c := &cobra.Command{
		Use:     "set-phone --email E --phone P",
		Short:   "Set a person's telephone number for SMS codes",
		Long:    "Set a person's telephone number for SMS codes; an empty one takes it away.",
		Example: "  tollgate user set-phone --email ada@example.com --phone +441632960961",
		Args:    cobra.NoArgs,
	}
	email := addEmail(c)
	o := addOutput(c)
	c.Flags().StringVar(&phone, "phone", "", "telephone number, such as +441632960961")
	required(c, "phone")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return changeUser(c, p, o, *email, func(ctx context.Context, op *wiring.Operator, e auth.Email) error {
			return op.People.SetPhone(ctx, e, phone)
		})
	}
	return c
}

func newUserList(p process) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List all people",
		Example: "  tollgate user list --output json",
		Args:    cobra.NoArgs,
	}
	o := addOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withOperator(c, p, func(op *wiring.Operator) error {
			var all []auth.Account
			var after auth.Email
			for {
				accounts, err := op.People.List(c.Context(), after, userPage)
				if err != nil {
					return err
				}
				all = append(all, accounts...)
				if len(accounts) < userPage {
					return o.print(p.stdout, usersTable(all))
				}
				after = accounts[len(accounts)-1].Email
			}
		})
	}
	return c
}

// addEmail adds the flag that names a person.
func addEmail(c *cobra.Command) *string {
	email := c.Flags().String("email", "", "e-mail address of the person")
	required(c, "email")
	return email
}

// changeUser changes an account and prints how it then stands.
func changeUser(c *cobra.Command, p process, o *output, email string, do func(context.Context, *wiring.Operator, auth.Email) error) error {
	address, err := auth.ParseEmail(email)
	if err != nil {
		return err
	}
	return withOperator(c, p, func(op *wiring.Operator) error {
		if err := do(c.Context(), op, address); err != nil {
			return notFound(err, "there is no user "+string(address))
		}
		account, err := op.People.ByEmail(c.Context(), address)
		if err != nil {
			return err
		}
		return o.print(p.stdout, usersTable([]auth.Account{account}))
	})
}

func usersTable(accounts []auth.Account) table {
	type row struct {
		ID    string `json:"id"`
		Email string `json:"email"`
		Name  string `json:"name"`
		State string `json:"state"`
		Phone string `json:"phone,omitempty"`
		MFA   string `json:"mfa"`
	}
	list := make([]row, 0, len(accounts))
	cells := make([][]string, 0, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		list = append(list, row{string(a.ID), string(a.Email), a.Name, string(a.State), a.Phone, mfaState(a.MFA)})
		cells = append(cells, []string{string(a.ID), string(a.Email), a.Name, string(a.State), a.Phone, mfaState(a.MFA)})
	}
	return table{header: []string{"ID", "EMAIL", "NAME", "STATE", "PHONE", "MFA"}, rows: cells, value: list}
}

// mfaState tells how a person's authenticator stands.
func mfaState(m auth.MFA) string {
	switch {
	case m.Active:
		return "active"
	case len(m.Secret) > 0:
		return "pending"
	}
	return "none"
}
