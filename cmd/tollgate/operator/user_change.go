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

// changeOf changes the account with an e-mail address.
type changeOf func(*people.Service, context.Context, auth.Email) error

// accountChange is a command that changes an account.
type accountChange struct {
	use, short, long string
	path             string // of the API
	endsOperating    bool   // it keeps the person from operating the service
}

// accountChanges returns the changes whose only parameter is the person's address.
func accountChanges() []accountChange {
	return []accountChange{
		{
			"lock", "Keep a person from signing in",
			"Keep a person from signing in until 'tollgate user unlock'. Active sessions\ncontinue.",
			"lock", true,
		},
		{
			"unlock", "Remove the locks of a person",
			"Remove the lock that 'tollgate user lock' set, and locks after failed sign-ins.",
			"unlock", false,
		},
		{
			"disable", "Disable a person's account",
			"End a person's sessions, and answer their logins like those of an unknown\nperson.",
			"disable", true,
		},
		{
			"enable", "Allow a disabled person to sign in again", "Allow a disabled person to sign in again.",
			"enable", false,
		},
		{
			"disable-mfa", "Remove a person's authenticator app",
			"Remove a person's authenticator app and recovery codes, for people who lost both,\n" +
				"and end their sessions.",
			"remove-second-factor", false,
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
	do := changedPerson(http.MethodPost, change.path, nil)
	return newPersonCommand(p, c, func(r run, a shownPerson) (cli.Table, error) {
		r.ctx = forced()
		return do(r, a)
	})
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
	return newPersonCommand(p, c, changedPerson(http.MethodPatch, "", func() any { return map[string]string{"phone": phone} }))
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
		all, err := listOf[shownPerson](r, at("people"), "people", nil)
		return cli.TableOf(slices.DeleteFunc(all, func(p shownPerson) bool {
			return state != "" && p.mfa() != state
		}), (*shownPerson).row), err
	})
}

// newUserChange completes a command that changes an account in the database and prints its new state.
func newUserChange(p cli.Process, c *cobra.Command, do changeOf) *cobra.Command {
	email := addPerson(c)
	return newDatabaseTable(p, c, func(r run) (cli.Table, error) {
		if err := do(r.People, r.ctx, *email); err != nil {
			return cli.Table{}, unknownPerson(err, *email)
		}
		changed, err := r.person(*email)
		return cli.ListTable([]userRow{changed.row()}), err
	})
}

// userRow is a person in the output of commands.
type userRow struct {
	ID    string `json:"id"              column:"ID"`
	Email string `json:"email"           column:"EMAIL"`
	Name  string `json:"name"            column:"NAME"`
	State string `json:"state"           column:"STATE"`
	Phone string `json:"phone,omitempty" column:"PHONE"`
	MFA   string `json:"mfa"             column:"MFA"`

	MFAEnrolledAt string `json:"mfaEnrolledAt,omitempty" column:"ENROLLED"`
}

func (p *shownPerson) row() userRow {
	return userRow{p.ID, p.Email, p.Name, p.State, p.Phone, p.mfa(), p.SecondFactorEnrolledAt}
}

// The states of a person's authenticator.
const (
	mfaActive  = "active"
	mfaPending = "pending" // enrolled, and can still be activated
	mfaNone    = "none"
)

// mfaStates returns the states of an authenticator.
func mfaStates() []string { return []string{mfaActive, mfaPending, mfaNone} }
