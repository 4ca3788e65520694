package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/wiring"
)

// userPage is the number of accounts that one query reads.
const userPage = 500

// changeOf changes the account with an e-mail address.
type changeOf func(*people.Service, context.Context, auth.Email) error

// accountChange is a command that changes an account.
type accountChange struct {
	use, short, long string
	do               changeOf
}

// accountChanges returns the changes whose only parameter is the person's address.
func accountChanges() []accountChange {
	return []accountChange{
		{
			"lock", "Keep a person from signing in",
			"Keep a person from signing in until 'tollgate user unlock'. Active sessions\ncontinue.",
			(*people.Service).Lock,
		},
		{
			"unlock", "Remove the locks of a person",
			"Remove the lock that 'tollgate user lock' set, and locks after failed sign-ins.", (*people.Service).Unlock,
		},
		{
			"disable", "Disable a person's account",
			"End a person's sessions, and answer their logins like those of an unknown\nperson.",
			(*people.Service).Disable,
		},
		{
			"enable", "Allow a disabled person to sign in again", "Allow a disabled person to sign in again.",
			(*people.Service).Enable,
		},
		{
			"disable-mfa", "Remove a person's authenticator app",
			"Remove a person's authenticator app and recovery codes, for people who lost both.",
			(*people.Service).DisableMFA,
		},
	}
}

func newUserChange(p cli.Process, change accountChange) *cobra.Command {
	c := &cobra.Command{
		Use:     change.use + " --email E",
		Short:   change.short,
		Long:    change.long,
		Example: "  tollgate user " + change.use + " --email ada@example.com",
		Args:    cobra.NoArgs,
	}
	email := addEmail(c)
	o := cli.AddOutput(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return changeUser(c, p, o, *email, change.do)
	}
	return c
}

func newUserSetPassword(p cli.Process) *cobra.Command {
	var fromStdin bool
	c := &cobra.Command{
		Use:     "set-password --email E",
		Short:   "Set a person's password and end their sessions",
		Example: "  printf '%s' \"$PASSWORD\" | tollgate user set-password --email ada@example.com --password-stdin",
		Args:    cobra.NoArgs,
	}
	email := addEmail(c)
	o := cli.AddOutput(c)
	c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	c.RunE = func(c *cobra.Command, _ []string) error {
		text, err := cli.ReadPassword(c.Context(), p, fromStdin)
		if err != nil {
			return err
		}
		password, err := auth.NewPassword("password", text)
		if err != nil {
			return err
		}
		return changeUser(c, p, o, *email, func(s *people.Service, ctx context.Context, e auth.Email) error {
			return s.SetPassword(ctx, e, password)
		})
	}
	return c
}

func newUserSetPhone(p cli.Process) *cobra.Command {
	var phone string
	c := &cobra.Command{
		Use:     "set-phone --email E --phone P",
		Short:   "Set a person's telephone number for SMS codes",
		Long:    "Set a person's telephone number for SMS codes; an empty number removes it.",
		Example: "  tollgate user set-phone --email ada@example.com --phone +441632960961",
		Args:    cobra.NoArgs,
	}
	email := addEmail(c)
	o := cli.AddOutput(c)
	c.Flags().StringVar(&phone, "phone", "", "telephone number, for example +441632960961")
	cli.RequireFlags(c, "phone")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return changeUser(c, p, o, *email, func(s *people.Service, ctx context.Context, e auth.Email) error {
			return s.SetPhone(ctx, e, phone)
		})
	}
	return c
}

func newUserList(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List all people",
		Long: "List all people, or those whose authenticator app is in one state. ENROLLED is\n" +
			"the time when it was enrolled; it is empty for an app that was enrolled before\n" +
			"migration 0009, when LIMITED_TRUST was enough to enrol one.",
		Example: "  tollgate user list --output json\n" +
			"  tollgate user list --mfa active",
		Args: cobra.NoArgs,
	}
	o := cli.AddOutput(c)
	var state string
	c.Flags().StringVar(&state, "mfa", "",
		"list only people whose authenticator app is in this state: active, pending or none")
	cli.CompleteValues(c, "mfa", mfaStates()...)
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
					return o.PrintResult(p.Stdout, usersTable(all))
				}
				after = accounts[len(accounts)-1].Email
			}
		})
	}
	return c
}

// changeUser changes an account and prints its new state.
func changeUser(c *cobra.Command, p cli.Process, o *cli.Output, email string, do changeOf) error {
	address, err := auth.ParseEmail(email)
	if err != nil {
		return err
	}
	return withOperator(c, p, func(op *wiring.Operator) error {
		if err := do(op.People, c.Context(), address); err != nil {
			return replaceNotFound(err, "there is no user "+string(address))
		}
		account, err := op.People.ByEmail(c.Context(), address)
		if err != nil {
			return err
		}
		return o.PrintResult(p.Stdout, usersTable([]auth.Account{account}))
	})
}

func usersTable(accounts []auth.Account) cli.Table {
	type row struct {
		ID    string `json:"id"              column:"ID"`
		Email string `json:"email"           column:"EMAIL"`
		Name  string `json:"name"            column:"NAME"`
		State string `json:"state"           column:"STATE"`
		Phone string `json:"phone,omitempty" column:"PHONE"`
		MFA   string `json:"mfa"             column:"MFA"`

		MFAEnrolledAt string `json:"mfaEnrolledAt,omitempty" column:"ENROLLED"`
	}
	return cli.TableOf(accounts, func(a *auth.Account) row {
		return row{
			string(a.ID), string(a.Email), a.Name, string(a.State), a.Phone, mfaState(&a.MFA), enrolledAt(&a.MFA),
		}
	})
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

// enrolledAt returns when an authenticator was enrolled; empty if there is no authenticator or no
// record of the time.
func enrolledAt(m *auth.MFA) string {
	if mfaState(m) == mfaNone || m.Enrolment.At.IsZero() {
		return ""
	}
	return cli.FormatTime(m.Enrolment.At)
}
