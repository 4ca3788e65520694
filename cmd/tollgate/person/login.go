package person

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// mfaTries is how often the command prompts for the code of a second factor. It is lower than the
// number of failures that locks an account.
const mfaTries = 3

// loginRun is one run of the command, with its flags.
type loginRun struct {
	*publisherRun

	address      serviceAddress
	email        string
	fromStdin    bool
	noBrowser    bool
	mfaCode      string
	method       string // the value of --step-up; empty if not chosen yet
	code         string
	trustMachine bool
}

func newLogin(p cli.Process) *cobra.Command {
	var l loginRun
	c := &cobra.Command{
		Use:   "login",
		Short: "Sign in at a service, to publish there",
		Long: "Sign in at a service and stay signed in, for 'tollgate publish' and similar\n" +
			"commands. The command shows a code of eight letters, opens the page for it in\n" +
			"your browser, with $BROWSER if that is set, and waits until you have approved it\n" +
			"there. The address works in a browser on any machine;\n" +
			"with --no-browser the command only prints it.\n\n" +
			"With --email or --password-stdin it signs in with a password. On a terminal it\n" +
			"prompts for everything that you do not give as a flag. Without a terminal it\n" +
			"never prompts: with --step-up email or sms it requests the code and exits with 3,\n" +
			"and you enter the code with 'tollgate login --code CODE'.\n\n" +
			"Tokens are stored in a file that only you can read, $" + CredentialsVariable + "\n" +
			"or tollgate/credentials.json in your configuration folder, and renewed when they\n" +
			"expire. The file also identifies this machine, so that the service recognises\n" +
			"the device at a later login.",
		Example: "  tollgate login --url https://tollgate.example.com\n" +
			"  tollgate login --url https://tollgate.example.com --no-browser\n" +
			"  tollgate login --url https://tollgate.example.com --email ada@example.com\n" +
			"  printf '%s' \"$PASSWORD\" | tollgate login --email ada@example.com --password-stdin --step-up email\n" +
			"  tollgate login --code 123456",
	}
	o := cli.AddOutput(c)
	a := addAddress(c)
	c.Flags().BoolVar(&l.noBrowser, "no-browser", false, "only print the address of the sign-in")
	c.Flags().StringVar(&l.email, "email", "", "e-mail address you sign in with; default: that of the last sign-in")
	c.Flags().BoolVar(&l.fromStdin, "password-stdin", false, "read the password from standard input")
	c.Flags().StringVar(&l.mfaCode, "mfa-code", "", "code of your authenticator, or a recovery code")
	c.Flags().StringVar(&l.method, "step-up", "",
		"raise the session's trust level with a code or at your company: email, sms, app, company or none")
	c.Flags().StringVar(&l.code, "code", "",
		"code of the step-up: with --step-up app, or alone for a step-up that an earlier command started")
	c.Flags().BoolVar(&l.trustMachine, "trust-device", false, "mark this machine as trusted, for later logins")
	cli.CheckFirst(c, l.checkFlags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		l.address = *a
		var err error
		if l.publisherRun, err = newPublisher(p); err != nil {
			return err
		}
		return l.run(c.Context(), o)
	}
	return c
}

// checkFlags returns an error if the flags contradict each other.
func (l *loginRun) checkFlags() error {
	if l.noBrowser && (l.fromStdin || l.mfaCode != "") {
		return errors.New("--no-browser signs in without a password: leave out --password-stdin and --mfa-code")
	}
	if l.method == "" {
		return nil
	}
	if err := checkStepUp(l.method); err != nil {
		return err
	}
	if l.code != "" && l.method != stepUpApp {
		return errors.New("--code completes a step-up that was started before: leave out --step-up, unless it is app")
	}
	return nil
}

func (l *loginRun) run(ctx context.Context, o *cli.Output) error {
	who, level, err := l.signIn(ctx)
	if err != nil {
		return err
	}
	if raised, err := l.raiseTrust(ctx, who, level); err != nil {
		return err
	} else if raised != "" {
		level = raised
	}
	if l.trustMachine {
		if err := who.TrustMachine(ctx); err != nil {
			return err
		}
	}
	return o.PrintResult(l.Stdout, cli.Table{
		Header: []string{"SERVICE", "EMAIL", "TRUST", "GOOD FOR"},
		Rows:   [][]string{{who.Client().URL(), who.Email(), level, allowedUse(level)}},
		Value:  map[string]string{"url": who.Client().URL(), "email": who.Email(), "trustLevel": level},
	})
}

// allowedUse returns what a session at a trust level may do with the default settings of a service
// (contract ).
func allowedUse(level string) string {
	switch {
	case level == auth.FullTrust.String():
		return "everything, including publishing"
	case mayStepUp(level):
		return "reading; publishing after a step-up"
	}
	return "reading"
}

// mayStepUp reports whether a session at a trust level can be raised (contract A-1).
func mayStepUp(level string) bool {
	l, _ := auth.ParseTrustLevel(level) // one of a newer service is none
	return l.Admits(auth.Unverified) && !l.Admits(auth.FullTrust)
}

// signIn starts a session. With --code alone it returns the account of the current session, which
// the code belongs to.
func (l *loginRun) signIn(ctx context.Context) (*account.Account, string, error) {
	if l.code != "" && l.method == "" {
		who, err := l.lastAccount(l.address)
		return who, "", err
	}
	if l.usesBrowser() {
		return l.signInByBrowser(ctx)
	}
	who, err := l.choosePerson(ctx)
	if err != nil {
		return nil, "", err
	}
	password, err := l.enterPassword(ctx)
	if err != nil {
		return nil, "", err
	}
	machine, err := who.Machine(ctx)
	if err != nil {
		return nil, "", err
	}
	session, err := who.Client().Login(ctx, who.Email(), password, machine)
	if err == nil && session.MFAUser != "" {
		session, err = l.verifyMFA(ctx, who, session.MFAUser, machine)
	}
	if err != nil {
		return nil, "", err
	}
	return who, session.TrustLevel, l.keep(ctx, who, session)
}

// keep stores a session, and how its service is called.
func (l *loginRun) keep(ctx context.Context, who *account.Account, session tollgateclient.SignedIn) error {
	trusted := l.address.caCert
	if trusted != "" {
		var err error
		if trusted, err = filepath.Abs(trusted); err != nil { // later commands may run in another folder
			return fmt.Errorf("--ca-cert: %w", err)
		}
	}
	return who.KeepSession(ctx, session, l.address.insecure, trusted)
}

// chooseService sets the address of the service.
func (l *loginRun) chooseService(ctx context.Context) error {
	l.address = l.withDefaults(l.address)
	if err := l.promptIfEmpty(ctx, &l.address.url, "Address of the service: ", "--url"); err != nil {
		return err
	}
	_, err := tollgateclient.ParseURL(l.address.url, l.address.insecure) // before the next prompt
	return err
}

// choosePerson returns the account that signs in.
func (l *loginRun) choosePerson(ctx context.Context) (*account.Account, error) {
	if err := l.chooseService(ctx); err != nil {
		return nil, err
	}
	if l.email == "" && l.address.url == l.last.URL {
		l.email = l.last.Email
	}
	if err := l.promptIfEmpty(ctx, &l.email, "E-mail: ", "--email"); err != nil {
		return nil, err
	}
	email, err := auth.ParseEmail(l.email)
	if err != nil {
		return nil, err
	}
	return l.newAccount(l.address, string(email))
}

// promptIfEmpty prompts for a value that is empty. Without a terminal it returns an error that
// names the flag.
func (l *loginRun) promptIfEmpty(ctx context.Context, value *string, prompt, flag string) (err error) {
	switch {
	case *value != "":
	case !l.IsInteractive():
		return errors.New(flag + " is missing")
	default:
		*value, err = l.ReadLine(ctx, prompt)
	}
	return err
}

func (l *loginRun) enterPassword(ctx context.Context) (string, error) {
	switch {
	case l.fromStdin:
		return cli.ReadPasswordLine(ctx, l.Process)
	case !l.IsInteractive():
		return "", errors.New(
			"standard input is not a terminal, so the password cannot be entered: use --password-stdin")
	}
	return l.ReadSecret(ctx, "Password: ")
}

// verifyMFA completes a login with the code of the second factor.
func (l *loginRun) verifyMFA(
	ctx context.Context, who *account.Account, user string, m tollgateclient.Machine,
) (tollgateclient.SignedIn, error) {
	if l.mfaCode != "" {
		return who.Client().VerifyMFA(ctx, user, l.mfaCode, m)
	}
	if !l.IsInteractive() {
		return tollgateclient.SignedIn{}, &account.SignInNeeded{
			Reason: "your account has a second factor: give its code with --mfa-code",
		}
	}
	for tries := mfaTries; ; {
		code, err := l.ReadLine(ctx, "Code from the authenticator: ")
		if err != nil {
			return tollgateclient.SignedIn{}, err
		}
		session, err := who.Client().VerifyMFA(ctx, user, code, m)
		if tries--; tries <= 0 || !tollgateclient.HasCode(err, auth.CodeInvalidMFA) {
			return session, err
		}
		l.PrintNote("%s", cli.ErrorSentence(err))
	}
}

// raiseTrust performs the step-up that the flags or the person at the terminal choose, and returns
// the new trust level. Without a step-up it returns an empty text.
func (l *loginRun) raiseTrust(ctx context.Context, who *account.Account, level string) (string, error) {
	if l.method == "" && l.code != "" {
		return who.FinishStepUp(ctx, l.code)
	}
	if l.method == "" && l.IsInteractive() && mayStepUp(level) {
		l.PrintNote("Signed in at %s: %s.", level, allowedUse(level))
		var err error
		if l.method, err = l.promptMethod(ctx); err != nil {
			return "", err
		}
	}
	switch {
	case l.method == "", l.method == stepUpNone, level == auth.FullTrust.String():
		return "", nil
	case l.code != "":
		if _, err := who.BeginStepUp(ctx, string(stepUpMethods()[l.method])); err != nil {
			return "", err
		}
		return who.FinishStepUp(ctx, l.code)
	case l.IsInteractive(), l.method == stepUpCompany:
		return l.stepUp(ctx, who, l.method)
	}
	return "", l.beginStepUp(ctx, who)
}

// beginStepUp starts a step-up that a later command completes. It always returns an error.
func (l *loginRun) beginStepUp(ctx context.Context, who *account.Account) error {
	if _, err := who.BeginStepUp(ctx, string(stepUpMethods()[l.method])); err != nil {
		return err
	}
	return &account.SignInNeeded{
		Reason: "you are signed in, and the step-up is waiting for its code by " + l.method +
			": enter it with 'tollgate login --code CODE'",
	}
}

func newLogout(p cli.Process) *cobra.Command {
	var a *serviceAddress
	c := &cobra.Command{
		Use:   "logout",
		Short: "End the session that login started",
		Long: "End the session at the service and delete its tokens from this machine. The\n" +
			"service still recognises the machine afterwards. If the service cannot be\n" +
			"reached, the command deletes the tokens anyway and exits with 1.",
		Example: "  tollgate logout",
		RunE: func(c *cobra.Command, _ []string) error {
			u, err := newPublisher(p)
			if err != nil {
				return err
			}
			who, err := u.lastAccount(*a)
			if err != nil {
				return err
			}
			if err := who.SignOut(c.Context()); err != nil {
				return explainSignOut(err)
			}
			u.PrintNote("Signed out of %s.", who.Client().URL())
			return nil
		},
	}
	a = addAddress(c)
	return c
}

// explainSignOut explains the state of a session that could not be ended because the service is
// unavailable.
func explainSignOut(err error) error {
	if fault.Is(err, fault.Unavailable) {
		return errors.New(
			"the tokens were deleted from this machine, but the session is still active at the service: " +
				cli.ErrorSentence(err))
	}
	return err
}
