package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
)

// userPage is the number of accounts that one query reads.
const userPage = 500

// changeOf changes the account with an e-mail address.
type changeOf func(*people.Service, context.Context, auth.Email) error

// accountChange is a command that changes an account.
type accountChange struct {
	use, short, long string
	do               changeOf
	path             string // of the API
	endsOperating    bool   // it keeps the person from operating the service
}

// accountChanges returns the changes whose only parameter is the person's address.
func accountChanges() []accountChange {
	return []accountChange{
		{
			"lock", "Keep a person from signing in",
			"Keep a person from signing in until 'tollgate user unlock'. Active sessions\ncontinue.",
			(*people.Service).Lock, "lock", true,
		},
		{
			"unlock", "Remove the locks of a person",
			"Remove the lock that 'tollgate user lock' set, and locks after failed sign-ins.",
			(*people.Service).Unlock, "unlock", false,
		},
		{
			"disable", "Disable a person's account",
			"End a person's sessions, and answer their logins like those of an unknown\nperson.",
			(*people.Service).Disable, "disable", true,
		},
		{
			"enable", "Allow a disabled person to sign in again", "Allow a disabled person to sign in again.",
			(*people.Service).Enable, "enable", false,
		},
		{
			"disable-mfa", "Remove a person's authenticator app",
			"Remove a person's authenticator app and recovery codes, for people who lost both,\n" +
				"and end their sessions.",
			(*people.Service).DisableMFA, "remove-second-factor", false,
		},
	}
}

func newAccountChange(p cli.Process, change accountChange) *cobra.Command {
	c := &cobra.Command{
		Use:     change.use + " --email E",
		Short:   change.short,
		Long:    change.long,
		Example: "  tollgate user " + change.use + " --email ada@example.com",
	}
	forced := c.Context
	if change.endsOperating {
		forced = addLastOperatorForce(c)
	}
	return newUserChange(p, c, func(s *people.Service, _ context.Context, e auth.Email) error {
		return change.do(s, forced(), e)
	}, changedPerson(http.MethodPost, change.path, nil))
}

func newUserSetPassword(p cli.Process) *cobra.Command {
	var fromStdin bool
	var password auth.Password
	c := &cobra.Command{
		Use:     "set-password --email E",
		Short:   "Set a person's password and end their sessions",
		Example: "  printf '%s' \"$PASSWORD\" | tollgate user set-password --email ada@example.com --password-stdin",
		PreRunE: func(c *cobra.Command, _ []string) (err error) {
			password, err = readPassword(c.Context(), p, fromStdin)
			return err
		},
	}
	c.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from standard input")
	return newUserChange(p, c, func(s *people.Service, ctx context.Context, e auth.Email) error {
		return s.SetPassword(ctx, e, password)
	})
}

func newUserSetPhone(p cli.Process) *cobra.Command {
	var phone string
	c := &cobra.Command{
		Use:     "set-phone --email E --phone P",
		Short:   "Set a person's telephone number for SMS codes",
		Long:    "Set a person's telephone number for SMS codes; an empty number removes it.",
		Example: "  tollgate user set-phone --email ada@example.com --phone +441632960961",
	}
	c.Flags().StringVar(&phone, "phone", "", "telephone number, for example +441632960961")
	cli.RequireFlags(c, "phone")
	return newUserChange(p, c, func(s *people.Service, ctx context.Context, e auth.Email) error {
		return s.SetPhone(ctx, e, phone)
	}, changedPerson(http.MethodPatch, "", func() any { return map[string]string{"phone": phone} }))
}

func newUserBreakGlass(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:   "break-glass --email E --for D",
		Short: "Admit a person's password although the company sign-in is enforced",
		Long: "Admit one person's password, and second factor, for a time: although people with\n" +
			"the domain of the e-mail address sign in at their company only (enforce), or\n" +
			"PASSWORD_SIGN_IN is off. Use it when the company's sign-in does not work. The\n" +
			"service sends every operator a notice now, and when the person signs in so.",
		Example: "  tollgate user break-glass --email ada@example.com --for 1h",
	}
	lasts := c.Flags().Duration("for", time.Hour, "how long the password is admitted, 5m to 24h")
	return newUserChange(p, c, func(s *people.Service, ctx context.Context, e auth.Email) error {
		return s.BreakGlass(ctx, e, *lasts)
	})
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
	}
	var state string
	c.Flags().StringVar(&state, "mfa", "",
		"list only people whose authenticator app is in this state: active, pending or none")
	cli.CompleteValues(c, "mfa", mfaStates()...)
	c.PreRunE = func(*cobra.Command, []string) error {
		if state != "" && !slices.Contains(mfaStates(), state) {
			return fmt.Errorf("--mfa: %q is not active, pending or none", state)
		}
		return nil
	}
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		var all []auth.Account
		var after auth.Email
		for {
			accounts, err := r.People.List(r.ctx, after, userPage)
			for i := range accounts {
				if state == "" || mfaState(&accounts[i].MFA) == state {
					all = append(all, accounts[i])
				}
			}
			if err != nil || len(accounts) < userPage {
				return usersTable(all), err
			}
			after = accounts[len(accounts)-1].Email
		}
	}, func(r run) (cli.Table, error) {
		if state == mfaPending {
			return cli.Table{}, onlyLocal("--mfa pending works on the database: leave out --server")
		}
		all, err := listOf[remotePerson](r, at("people"), "people", nil)
		return cli.TableOf(slices.DeleteFunc(all, func(p remotePerson) bool {
			return state != "" && p.mfa() != state
		}), (*remotePerson).row), err
	})
}

// newUserChange completes a command that changes an account and prints its new state.
func newUserChange(
	p cli.Process, c *cobra.Command, do changeOf, far ...personFinder,
) *cobra.Command {
	email := addPerson(c)
	return newTableCommand(p, c, func(r run) (cli.Table, error) {
		if err := do(r.People, r.ctx, *email); err != nil {
			return cli.Table{}, unknownPerson(err, *email)
		}
		a, err := r.person(*email)
		return usersTable([]auth.Account{a}), err
	}, onPerson(email, far)...)
}

// userRow is a person in the output of commands.
type userRow struct {
	ID    string `json:"id"              column:"ID"`
	Email string `json:"email"           column:"EMAIL"`
	Name  string `json:"name"            column:"NAME"`
	State string `json:"state"           column:"STATE"`
	Phone string `json:"phone,omitempty" column:"PHONE"`
	MFA   string `json:"mfa"             column:"MFA"`

	MFAEnrolledAt string `json:"mfaEnrolledAt,omitempty" column:"ENROLLED"` // the API does not tell it
}

func (p *remotePerson) row() userRow {
	return userRow{ID: p.ID, Email: p.Email, Name: p.Name, State: p.State, Phone: p.Phone, MFA: p.mfa()}
}

func usersTable(accounts []auth.Account) cli.Table {
	return cli.TableOf(accounts, func(a *auth.Account) userRow {
		return userRow{
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
