package operator

import (
	"strings"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
)

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
	plain, rows := make([]string, len(codes)), make([][]string, len(codes))
	for i, one := range codes {
		plain[i] = string(one)
		rows[i] = plain[i : i+1]
	}
	return e.out.PrintResult(e.Stdout, cli.Table{
		Header: []string{"RECOVERY CODES"}, Rows: rows, Value: map[string][]string{"recoveryCodes": plain},
	})
}
