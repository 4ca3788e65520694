package operator

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/person"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/each"
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

func newUserShow(p cli.Process) *cobra.Command {
	return newPersonCommand(p, &cobra.Command{
		Use:   "show --email E",
		Short: "Show one person",
		Long: "Show one person: the state of the account, the grants with their origin, the\n" +
			"identities at providers of company sign-in, and the number of\n" +
			"devices and active sessions ('tollgate device list', 'tollgate session list').",
		Example: "  tollgate user show --email ada@example.com",
	}, func(r run, a shownPerson) (cli.Table, error) {
		value := shownUser{
			ID: a.ID, Email: a.Email, Name: a.Name, State: a.State, Phone: a.Phone, MFA: a.mfa(),
			MFAEnrolledAt: a.SecondFactorEnrolledAt, RecoveryCodes: a.RecoveryCodes, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
			Grants: each.Map(a.Grants, func(g grantText) shownGrant { return shownGrant{g.Action, g.Resource, g.Origin} }),
		}
		devices, err := listOf[deviceRow](r, at("people", a.ID, "devices"), "devices", nil)
		if err != nil {
			return cli.Table{}, err
		}
		sessions, err := listOf[sessionRow](r, at("people", a.ID, "sessions"), "sessions", nil)
		if err != nil {
			return cli.Table{}, err
		}
		value.Devices, value.Sessions = len(devices), len(sessions)
		value.Identities, err = listOf[shownIdentity](r, at("people", a.ID, "identities"), "identities", nil)
		return value.table(), err
	})
}

type shownGrant struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
	Origin   string `json:"origin"`
}

// shownIdentity is an identity of a person at a provider.
type shownIdentity struct {
	Provider   string `json:"provider"` // empty if it is not configured any more
	Subject    string `json:"subject"`
	Email      string `json:"email"`
	LastUsedAt string `json:"lastUsedAt"`
}

// shownUser is a person in the output of show.
type shownUser struct {
	ID            string          `json:"id"`
	Email         string          `json:"email"`
	Name          string          `json:"name"`
	State         string          `json:"state"`
	Phone         string          `json:"phone,omitempty"`
	MFA           string          `json:"mfa"`
	MFAEnrolledAt string          `json:"mfaEnrolledAt,omitempty"`
	RecoveryCodes int             `json:"recoveryCodes"`
	CreatedAt     string          `json:"createdAt"`
	UpdatedAt     string          `json:"updatedAt,omitempty"`
	Devices       int             `json:"devices"`
	Sessions      int             `json:"sessions"`
	Grants        []shownGrant    `json:"grants"`
	Identities    []shownIdentity `json:"identities"`
}

func (value shownUser) table() cli.Table {
	rows := [][]string{
		{"id", value.ID}, {"email", value.Email}, {"name", value.Name}, {"state", value.State},
		{"phone", value.Phone}, {"mfa", value.MFA}, {"mfa enrolled", value.MFAEnrolledAt},
		{"recovery codes", strconv.Itoa(value.RecoveryCodes)}, {"created", value.CreatedAt}, {"updated", value.UpdatedAt},
		{"devices", strconv.Itoa(value.Devices)}, {"sessions", strconv.Itoa(value.Sessions)},
	}
	for _, g := range value.Grants {
		rows = append(rows, []string{"grant", g.Action + " " + g.Resource + " (" + g.Origin + ")"})
	}
	for _, i := range value.Identities {
		rows = append(rows, []string{"identity", strings.TrimSpace(i.Provider + " " + i.Subject + " " + i.Email)})
	}
	return cli.Table{Header: []string{"FIELD", "VALUE"}, Rows: rows, Value: value}
}

func newUserInviteAgain(p cli.Process) *cobra.Command {
	return newUserLink(p, &cobra.Command{
		Use:   "invite-again --email E",
		Short: "Invite a person again and print the link",
		Long: "Make a new invitation for a person who has not accepted one, and print its link,\n" +
			"this once. With --server the service also sends it by e-mail if it can, and\n" +
			"DELIVERED says whether it did; a token gets no link, which is sent only. Links\n" +
			"that were made before end.",
		Example: "  tollgate user invite-again --email grace@example.com",
	}, "invitation", newInvitationRow)
}

func newUserResetLink(p cli.Process) *cobra.Command {
	return newUserLink(p, &cobra.Command{
		Use:   "reset-link --email E",
		Short: "Print a link by which a person sets a new password",
		Long: "Make a link by which a person who forgot the password sets a new one, and print\n" +
			"it, this once, to hand over. It is good once and for 30 minutes. With --server\n" +
			"and a token it is sent to the person by e-mail, and not printed.",
		Example: "  tollgate user reset-link --email ada@example.com",
	}, "reset-link", newLinkRow)
}

// newUserLink completes a command that makes a link for a person and prints it as a row. path is the
// last part of its path in the API.
func newUserLink[R any](p cli.Process, c *cobra.Command, path string, row func(people.Link) R) *cobra.Command {
	return newPersonCommand(p, c, func(r run, a shownPerson) (cli.Table, error) {
		var link struct {
			URL       string
			ExpiresAt time.Time
			Delivered bool
		}
		err := r.send(http.MethodPost, at("people", a.ID, path), nil, &link)
		return cli.RowTable(row(people.Link{
			URL: whereIs(link.URL, link.Delivered), ExpiresAt: link.ExpiresAt, Delivered: link.Delivered,
		})), err
	})
}

func newUserSetName(p cli.Process) *cobra.Command {
	c := &cobra.Command{
		Use:     "set-name --email E --name N",
		Short:   "Change a person's name",
		Example: "  tollgate user set-name --email ada@example.com --name 'Ada Lovelace'",
	}
	name := c.Flags().String("name", "", "the person's name")
	cli.RequireFlags(c, "name")
	return newPersonCommand(p, c, changedPerson(http.MethodPatch, "", func() any { return map[string]string{"name": *name} }))
}

func newUserEnrolMFA(p cli.Process) *cobra.Command {
	var code string
	c := &cobra.Command{
		Use:   "enrol-mfa --email E",
		Short: "Give a person an authenticator app as second factor",
		Long: "Create the secret of an authenticator app and show it, on a terminal also as a QR\n" +
			"code. On a terminal the command then prompts for the app's first code; otherwise\n" +
			"enter it later with --activate. From then on logins need a code. The command\n" +
			"shows recovery codes, only this once; each can replace a code once.",
		Example: "  tollgate user enrol-mfa --email ada@example.com\n" +
			"  tollgate user enrol-mfa --email ada@example.com --activate 123456",
	}
	email, o := addPerson(c), cli.AddOutput(c)
	c.Flags().StringVar(&code, "activate", "", "the app's first code, for an authenticator that is already enrolled")
	return newDatabaseCommand(p, c, func(r run) error {
		e := enrolment{r, p, o, *email}
		if c.Flags().Changed("activate") {
			return unknownPerson(e.activateSecret(code), *email)
		}
		return unknownPerson(e.createSecret(), *email)
	})
}

// enrolment is one run of enrol-mfa, with its flags.
type enrolment struct {
	run
	cli.Process

	out   *cli.Output
	email auth.Email
}

// createSecret creates and prints a secret, and on a terminal prompts for a code to activate it.
func (e enrolment) createSecret() error {
	secret, err := e.People.EnrolMFA(e.ctx, e.email)
	if err != nil {
		return err
	}
	uri := secret.URI(e.Issuer, e.email)
	if !e.out.Structured() && cli.IsTerminal(e.Stdout) {
		qrterminal.GenerateHalfBlock(uri, qrterminal.M, e.Stdout)
	}
	err = e.out.PrintResult(e.Stdout, cli.Table{
		Header: []string{"SECRET", "URI"},
		Rows:   [][]string{{secret.Base32(), uri}},
		Value:  map[string]string{"secret": secret.Base32(), "otpauthUri": uri},
	})
	if err != nil {
		return err
	}
	d := cli.NewPrompter(e.Process)
	if e.out.Structured() || !d.IsInteractive() {
		d.PrintNote("To finish, run: tollgate user enrol-mfa --email %s --activate CODE", e.email)
		return nil
	}
	code, err := d.ReadLine(e.ctx, "Code from the app: ")
	if err != nil {
		return err
	}
	return e.activateSecret(code)
}

// activateSecret activates the authenticator and prints the recovery codes.
func (e enrolment) activateSecret(code string) error {
	codes, err := e.People.ActivateMFA(e.ctx, e.email, auth.OTP(strings.TrimSpace(code)))
	if err != nil {
		return err
	}
	plain := each.Strings(codes)
	rows := each.Map(plain, func(one string) []string { return []string{one} })
	return e.out.PrintResult(e.Stdout, cli.Table{
		Header: []string{"RECOVERY CODES"}, Rows: rows, Value: map[string][]string{"recoveryCodes": plain},
	})
}
