package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// mfaTries is how often a terminal is asked for the code of a second factor: less often than what locks an account.
const mfaTries = 3

// login is one run of the command, with what its flags say.
type loginRun struct {
	*publisher

	address      serviceAddress
	email        string
	fromStdin    bool
	mfaCode      string
	method       string // a word of --step-up; empty when nobody has chosen
	code         string
	trustMachine bool
}

func newLogin(p process) *cobra.Command {
	var l loginRun
	c := &cobra.Command{
		Use:   "login",
		Short: "Sign in at a service, to publish there",
		Long: "Sign in at a service and stay signed in, for 'tollgate publish' and similar commands. On a terminal the command prompts\n" +
			"for everything that you do not give as a flag. Without a terminal it never prompts: with --step-up email or sms it\n" +
			"requests the code and exits with 3, and you enter the code with 'tollgate login --code CODE'.\n\n" +
			"Tokens are stored in a file that only you can read, $TOLLGATE_CREDENTIALS or tollgate/credentials.json in your\n" +
			"configuration folder, and renewed when they expire. The file also identifies this machine, so that the service\n" +
			"recognises the device at a later login." + credentialsVariable + " or tollgate/credentials.json in your\n" +
			"folder of settings, and renewed when they run out. The file also remembers this machine, so that a later login comes\n" +
			"from a device that the service knows.",
		Example: "  tollgate login --url https://tollgate.example.com --email ada@example.com\n" +
			"  printf '%s' \"$PASSWORD\" | tollgate login --email ada@example.com --password-stdin --step-up email\n" +
			"  tollgate login --code 123456",
		Args: cobra.NoArgs,
	}
	o := addOutput(c)
	a := addAddress(c)
	c.Flags().StringVar(&l.email, "email", "", "e-mail address you sign in with; default: the one of the last sign-in")
	c.Flags().BoolVar(&l.fromStdin, "password-stdin", false, "read the password from standard input")
	c.Flags().StringVar(&l.mfaCode, "mfa-code", "", "code of your authenticator, or a recovery code")
	c.Flags().StringVar(&l.method, "step-up", "", "raise the session's trust level with a code: email, sms, app or none")
	c.Flags().StringVar(&l.code, "code", "", "code of the step-up: with --step-up app, or for a step-up that was started before")
	c.Flags().BoolVar(&l.trustMachine, "trust-device", false, "mark this machine as one that you trust, for later logins")
	c.RunE = func(c *cobra.Command, _ []string) error {
		l.address = *a
		if err := l.checkFlags(); err != nil {
			return err
		}
		var err error
		if l.publisher, err = newPublisher(p); err != nil {
			return err
		}
		return l.run(c.Context(), o)
	}
	return c
}

// check refuses flags that do not go together.
func (l *loginRun) checkFlags() error {
	if l.method == "" {
		return nil
	}
	if err := checkStepUp(l.method); err != nil {
		return err
	}
	if l.code != "" && l.method != stepUpApp {
		return errors.New("--code answers a step-up that was begun before: leave --step-up out, but for the app")
	}
	return nil
}

func (l *loginRun) run(ctx context.Context, o *output) error {
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
	return o.printResult(l.stdout, table{
		header: []string{"SERVICE", "EMAIL", "TRUST", "GOOD FOR"},
		rows:   [][]string{{who.Client().URL(), who.Email(), level, allowedUse(level)}},
		value:  map[string]string{"url": who.Client().URL(), "email": who.Email(), "trustLevel": level},
	})
}

// goodFor returns what a session of a trust level may do, by the default settings of a service
// (contract ).
func allowedUse(level string) string {
	switch level {
	case auth.FullTrust.String():
		return "publishing, and all else"
	case auth.LimitedTrust.String(), auth.Unverified.String():
		return "reading; publishing after a step-up"
	}
	return "reading"
}

// signIn makes a session, unless the code of a step-up is all that was given: that belongs to the session there is.
func (l *loginRun) signIn(ctx context.Context) (*account.Account, string, error) {
	if l.code != "" && l.method == "" {
		who, err := l.lastAccount(l.address)
		return who, "", err
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
	return who, session.TrustLevel, who.KeepSession(ctx, session, l.address.insecure)
}

// askWho returns the person who signs in.
func (l *loginRun) choosePerson(ctx context.Context) (*account.Account, error) {
	l.address = l.address.withLastSignIn(l.last)
	if l.email == "" && l.address.url == l.last.URL {
		l.email = l.last.Email
	}
	if err := l.promptIfEmpty(ctx, &l.address.url, "Address of the service: ", "--url"); err != nil {
		return nil, err
	}
	if _, err := tollgateclient.ParseURL(l.address.url, l.address.insecure); err != nil { // before anything else is asked
		return nil, err
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

// complete asks for a value that is not there.
func (l *loginRun) promptIfEmpty(ctx context.Context, value *string, prompt, flag string) (err error) {
	switch {
	case *value != "":
	case !l.isInteractive():
		return errors.New(flag + " is missing")
	default:
		*value, err = l.readLine(ctx, prompt)
	}
	return err
}

func (l *loginRun) enterPassword(ctx context.Context) (string, error) {
	switch {
	case l.fromStdin:
		return readPasswordLine(ctx, l.process)
	case !l.isInteractive():
		return "", errors.New("standard input is not a terminal, so the password cannot be entered: use --password-stdin")
	}
	return l.readSecret(ctx, "Password: ")
}

// secondStep answers the question for a second factor.
func (l *loginRun) verifyMFA(ctx context.Context, who *account.Account, user string, m tollgateclient.Machine) (tollgateclient.SignedIn, error) {
	if l.mfaCode != "" {
		return who.Client().VerifyMFA(ctx, user, l.mfaCode, m)
	}
	if !l.isInteractive() {
		return tollgateclient.SignedIn{}, &account.SignInNeeded{Reason: "your account has a second factor: give its code with --mfa-code"}
	}
	for tries := mfaTries; ; {
		code, err := l.readLine(ctx, "Code of the authenticator: ")
		if err != nil {
			return tollgateclient.SignedIn{}, err
		}
		session, err := who.Client().VerifyMFA(ctx, user, code, m)
		if tries--; tries <= 0 || !hasCode(err, auth.CodeInvalidMFA) {
			return session, err
		}
		l.printNote("%s", errorSentence(err))
	}
}

// raise makes the step-up that was asked for, or that the person at the terminal wants, and returns the new level;
// empty when there was none.
func (l *loginRun) raiseTrust(ctx context.Context, who *account.Account, level string) (string, error) {
	if l.method == "" && l.code != "" {
		return who.FinishStepUp(ctx, l.code)
	}
	if l.method == "" && l.isInteractive() && (level == auth.Unverified.String() || level == auth.LimitedTrust.String()) {
		l.printNote("Signed in at %s: %s.", level, allowedUse(level))
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
	case l.isInteractive():
		return l.stepUp(ctx, who, l.method)
	}
	return "", l.beginStepUp(ctx, who)
}

// begin begins a step-up whose code another command brings.
func (l *loginRun) beginStepUp(ctx context.Context, who *account.Account) error {
	if _, err := who.BeginStepUp(ctx, string(stepUpMethods()[l.method])); err != nil {
		return err
	}
	return &account.SignInNeeded{Reason: "you are signed in, and the step-up waits for its code by " + l.method + ": bring it with 'tollgate login --code CODE'"}
}

func newLogout(p process) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "End the session that login started",
		Long: "End the session at the service and delete its tokens from this machine. The service still recognises the machine\n" +
			"afterwards. If the service cannot be reached, the tokens are deleted too, and the command exits with 1.",
		Example: "  tollgate logout",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			u, err := newPublisher(p)
			if err != nil {
				return err
			}
			who, err := u.lastAccount(serviceAddress{})
			if err != nil {
				return err
			}
			if err := who.SignOut(c.Context()); err != nil {
				return explainSignOut(err)
			}
			u.printNote("Signed out of %s.", who.Client().URL())
			return nil
		},
	}
}

// told says what became of a session that could not be ended at the service.
func explainSignOut(err error) error {
	if fault.Is(err, fault.Unavailable) {
		return errors.New("the tokens are forgotten here, but the session lives on at the service: " + errorSentence(err))
	}
	return err
}
