// Package person has the commands with which people and CI jobs publish at a service. They call its
// API and need no access to its database.
package person

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/credentialfile"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// CredentialsVariable is the variable with the path of the credential file.
const CredentialsVariable = "TOLLGATE_CREDENTIALS"

// Commands returns the commands with which people and CI jobs publish at a service.
func Commands(p cli.Process) []*cobra.Command {
	all := []*cobra.Command{
		newContext(p), newLogin(p), newLogout(p), newPublish(p), newServer(p), newStatus(p), newTools(p), newVersion(p),
		newWhoami(p),
	}
	for _, c := range all {
		if run := c.RunE; run != nil {
			c.RunE = func(c *cobra.Command, args []string) error {
				err := run(c, args)
				if fault.Is(err, fault.Unauthenticated) { // a password or a proof is wrong: no sign-in mends that
					return err
				}
				return ExitError(err)
			}
		}
	}
	return all
}

// publisherRun is one run of a command with which a person publishes at a service.
type publisherRun struct {
	cli.Process
	*cli.Prompter

	file *credentialfile.File
	last credentialfile.SignIn    // of the context; empty before the first sign-in
	all  []*credentialfile.SignIn // of all contexts
}

// newPublisher returns a run with the sign-in of a context, of the one in use for an empty name. With a
// token in TOLLGATE_TOKEN it needs no file.
func newPublisher(p cli.Process, name string) (*publisherRun, error) {
	u, contents, err := openFile(p)
	if err == nil && name != "" && contents.Context(name) == nil {
		return u, fmt.Errorf("there is no context %s: 'tollgate context list' shows them", cli.ReplaceControls(name))
	}
	if err == nil {
		u.choose(contents, name)
	}
	if err != nil && p.Getenv(TokenVariable) != "" {
		return &publisherRun{Process: p, Prompter: cli.NewPrompter(p)}, nil
	}
	return u, err
}

// choose makes the sign-in of a context the last one.
func (u *publisherRun) choose(c credentialfile.Contents, name string) {
	s := c.SignIn
	if name != "" {
		s = c.Context(name)
	}
	if u.last = (credentialfile.SignIn{Name: name}); s != nil {
		u.last = *s
	}
}

// openFile returns a run, and what the file of credentials has.
func openFile(p cli.Process) (*publisherRun, credentialfile.Contents, error) {
	path := p.Getenv(CredentialsVariable)
	if path == "" {
		var err error
		if path, err = credentialfile.DefaultPath(); err != nil {
			return nil, credentialfile.Contents{}, err
		}
	}
	u := &publisherRun{Process: p, Prompter: cli.NewPrompter(p), file: credentialfile.New(path)}
	contents, err := u.file.Read()
	u.all = contents.All()
	return u, contents, err
}

// serviceAddress is the address of the service that a command calls.
type serviceAddress struct {
	context  string
	url      string
	insecure bool
	caCert   string
}

// addAddress adds the flags --url, --server, --insecure-http and --ca-cert to a command.
func addAddress(c *cobra.Command) *serviceAddress {
	a := &serviceAddress{}
	c.Flags().StringVar(&a.url, "url", "",
		"address of the service; default: $"+ServerVariable+", or that of the last sign-in")
	c.Flags().StringVar(&a.url, serverFlag, "", "the same as --url")
	c.Flags().BoolVar(&a.insecure, "insecure-http", false,
		"allow http to another machine, although others on the network path can read the password and tokens")
	addCACert(c, &a.caCert)
	addContext(c, &a.context)
	return a
}

// contextFlag is the flag with the name of a context.
const contextFlag = "context"

func addContext(c *cobra.Command, name *string) {
	c.Flags().StringVar(name, contextFlag, "", "name of a sign-in, as 'tollgate context list' shows it; default: the one in use")
}

func addCACert(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "ca-cert", "", "file with a certificate in PEM form that is trusted too")
	_ = c.MarkFlagFilename("ca-cert") // fails only for an unknown flag
}

// withDefaults returns the address with missing values from the environment or the last sign-in.
func (u *publisherRun) withDefaults(a serviceAddress) serviceAddress {
	if a.context != "" {
		a.url = cmp.Or(a.url, u.last.URL)
	}
	a.url = cmp.Or(a.url, u.Getenv(ServerVariable), u.last.URL)
	for _, s := range u.all {
		if u.last.URL != a.url && s.URL == a.url { // the context of the service
			u.last = *s
		}
	}
	if a.url == u.last.URL {
		a.insecure, a.caCert = a.insecure || u.last.InsecureHTTP, cmp.Or(a.caCert, u.last.CACert)
	}
	return a
}

// lastAccount returns the account of the last sign-in, at the given service.
func (u *publisherRun) lastAccount(a serviceAddress) (*account.Account, error) {
	a = u.withDefaults(a)
	if a.url == "" {
		return nil, &account.SignInNeeded{
			Reason: "you are not signed in: sign in with 'tollgate login', or set " + ServerVariable + " to the address of the service",
		}
	}
	return u.newAccount(a, u.last.Email)
}

// newAccount returns the account with an e-mail address at a service.
func (u *publisherRun) newAccount(a serviceAddress, email string) (*account.Account, error) {
	client, err := tollgateclient.New(tollgateclient.Config{
		URL: a.url, InsecureHTTP: a.insecure, CACert: a.caCert,
		UserAgent: fmt.Sprintf("tollgate/%s (%s; %s)", u.Build.Version, runtime.GOOS, runtime.GOARCH),
	})
	if err != nil {
		return nil, err
	}
	return account.New(u.file, client, email), nil
}

// callWithStepUp makes a call with the token in TOLLGATE_TOKEN, or else as a person. If the trust level of the session is too low, it prompts
// for a step-up and repeats the call.
func (u *publisherRun) callWithStepUp(
	ctx context.Context, who *account.Account, call func(ctx context.Context, token string) error,
) error {
	if token := u.Getenv(TokenVariable); token != "" {
		return call(ctx, token)
	}
	err := who.Do(ctx, call)
	if !tollgateclient.NeedsStepUp(err) {
		return err
	}
	if !u.IsInteractive() {
		return &account.SignInNeeded{Reason: cli.ErrorSentence(err) + ": sign in with 'tollgate login --step-up email'"}
	}
	u.PrintNote("%s", cli.ErrorSentence(err))
	method, askErr := u.promptMethod(ctx)
	if askErr != nil {
		return askErr
	}
	if method == stepUpNone {
		return &account.SignInNeeded{Reason: cli.ErrorSentence(err)}
	}
	if _, err := u.stepUp(ctx, who, method); err != nil {
		return err
	}
	return who.Do(ctx, call)
}

// nameSubject adds the subject to a refusal that does not mention it. The service knows the subject
// from the request, but the message may appear in the output of a script that contains many
// requests.
func nameSubject(what string, err error) error {
	f, ok := fault.As(err)
	if !ok || strings.Contains(f.Message, what) {
		return err
	}
	switch f.Kind {
	case fault.Invalid, fault.NotFound, fault.Conflict:
		return fault.Wrap(f.Kind, what+": "+f.Message, err).WithCode(f.Code)
	default: // the refusal concerns the person or the service
		return err
	}
}
