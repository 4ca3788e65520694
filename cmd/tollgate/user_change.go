package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/wiring"
)

// userPage is how many accounts are read at once.
const userPage = 500

// change is one thing an operator does to an account.
type accountChange struct {
	use, short, long string
	do               func(context.Context, *wiring.Operator, auth.Email) error
}

// changes are those that need no more than the person's address.
func accountChanges() []accountChange {
	return []accountChange{
		{"lock", "Keep a person from signing in", "Keep a person from signing in until 'user unlock'. Active sessions stay.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error { return op.People.Lock(ctx, e) }},
		{"unlock", "Remove the locks of a person", "Remove the lock of an operator, and locks after failed sign-ins.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error { return op.People.Unlock(ctx, e) }},
		{"disable", "Disable a person's account", "End a person's sessions, and answer their logins like those of an unknown person.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error { return op.People.Disable(ctx, e) }},
		{"enable", "Allow a disabled person to sign in again", "Allow a disabled person to sign in again.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error { return op.People.Enable(ctx, e) }},
		{"disable-mfa", "Remove a person's authenticator", "Remove a person's authenticator and recovery codes, for people who lost both.",
			func(ctx context.Context, op *wiring.Operator, e auth.Email) error {
				return op.People.DisableMFA(ctx, e)
			}},
	}
}

func newUserChange(p process, what accountChange) *cobra.Command {
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
		Long:    "Set a person's telephone number for SMS codes; an empty number removes it.",
		Example: "  tollgate user set-phone --email ada@example.com --phone +441632960961",
		Args:    cobra.NoArgs,
	}
	email := addEmail(c)
	o := addOutput(c)
	c.Flags().StringVar(&phone, "phone", "", "telephone number, for example +441632960961")
	requireFlags(c, "phone")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return changeUser(c, p, o, *email, func(ctx context.Context, op *wiring.Operator, e auth.Email) error {
			return op.People.SetPhone(ctx, e, phone)
		})
	}
	return c
}

func newUserList(p process) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List all people",
		Long: "List all people, or those whose authenticator is in one state. ENROLLED is the time when it was enrolled; it is empty\n" +
			"for an authenticator that was enrolled before migration 0009, when LIMITED_TRUST was enough to enrol one.",
		Example: "  tollgate user list --output json\n" +
			"  tollgate user list --mfa active",
		Args: cobra.NoArgs,
	}
	o := addOutput(c)
	var state string
	c.Flags().StringVar(&state, "mfa", "", "list only people whose authenticator is in this state: active, pending or none")
	completeValues(c, "mfa", mfaStates()...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if state != "" && !slices.Contains(mfaStates(), state) {
			return fmt.Errorf("--mfa: %q is not active, pending or none", state)
		}
		return withOperator(c, p, func(op *wiring.Operator) error {
			var all []auth.Account
			var after auth.Email
			for {
				accounts, err := op.People.List(c.Context(), after, userPage)
				if err != nil {
					return err
				}
				for i := range accounts {
					if state == "" || mfaState(&accounts[i].MFA) == state {
						all = append(all, accounts[i])
					}
				}
				if len(accounts) < userPage {
					return o.printResult(p.stdout, usersTable(all))
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
	requireFlags(c, "email")
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
			return replaceNotFound(err, "there is no user "+string(address))
		}
		account, err := op.People.ByEmail(c.Context(), address)
		if err != nil {
			return err
		}
		return o.printResult(p.stdout, usersTable([]auth.Account{account}))
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

		MFAEnrolledAt string `json:"mfaEnrolledAt,omitempty"`
	}
	list := make([]row, 0, len(accounts))
	cells := make([][]string, 0, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		r := row{string(a.ID), string(a.Email), a.Name, string(a.State), a.Phone, mfaState(&a.MFA), enrolledAt(&a.MFA)}
		list = append(list, r)
		cells = append(cells, []string{r.ID, r.Email, r.Name, r.State, r.Phone, r.MFA, r.MFAEnrolledAt})
	}
	return table{header: []string{"ID", "EMAIL", "NAME", "STATE", "PHONE", "MFA", "ENROLLED"}, rows: cells, value: list}
}

// The states of a person's authenticator.
const (
	mfaActive  = "active"
	mfaPending = "pending" // enrolled, and can still be activated
	mfaNone    = "none"
)

// mfaStates returns the states of an authenticator.
func mfaStates() []string { return []string{mfaActive, mfaPending, mfaNone} }

// mfaState returns the state of a person's authenticator.
func mfaState(m *auth.MFA) string {
	switch {
	case m.Active:
		return mfaActive
	case m.Pending(time.Now()):
		return mfaPending
	}
	return mfaNone
}

// enrolledAt returns when an authenticator was enrolled, empty for none and where it is not recorded.
func enrolledAt(m *auth.MFA) string {
	if mfaState(m) == mfaNone || m.Enrolment.At.IsZero() {
		return ""
	}
	return formatTime(m.Enrolment.At)
}
