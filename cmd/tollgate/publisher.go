package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/credentialfile"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// credentialsVariable names the file that keeps a person signed in.
const credentialsVariable = "TOLLGATE_CREDENTIALS"

// publisher is one run of a command that calls a service as a person who publishes there.
type publisher struct {
	process
	*prompter

	file *credentialfile.File
	last credentialfile.SignIn // the last sign-in; empty before the first
}

func newPublisher(p process) (*publisher, error) {
	path := lookupVariable(p.environ, credentialsVariable)
	if path == "" {
		var err error
		if path, err = credentialfile.DefaultPath(); err != nil {
			return nil, err
		}
	}
	u := &publisher{process: p, prompter: newPrompter(p), file: credentialfile.New(path)}
	contents, err := u.file.Read()
	if err != nil {
		return nil, err
	}
	if contents.SignIn != nil {
		u.last = *contents.SignIn
	}
	return u, nil
}

// variable returns a variable of the environment; empty when it is not set.
func lookupVariable(environ []string, name string) string {
	value := ""
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v // of two with one name the last counts, as for programs
		}
	}
	return value
}

// address is which service a command calls.
type serviceAddress struct {
	url      string
	insecure bool
}

// addAddress adds the flags for it to a command.
func addAddress(c *cobra.Command) *serviceAddress {
	a := &serviceAddress{}
	c.Flags().StringVar(&a.url, "url", "", "address of the service; default: the one of the last sign-in")
	c.Flags().BoolVar(&a.insecure, "insecure-http", false, "allow http to another machine, where anybody on the network path can read everything")
	return a
}

// fill takes from the last sign-in what the flags leave open.
func (a serviceAddress) withLastSignIn(last credentialfile.SignIn) serviceAddress {
	if a.url == "" {
		a.url = last.URL
	}
	a.insecure = a.insecure || a.url == last.URL && last.InsecureHTTP
	return a
}

// account returns the person of the last sign-in at a service.
func (u *publisher) lastAccount(a serviceAddress) (*account.Account, error) {
	a = a.withLastSignIn(u.last)
	if a.url == "" {
		return nil, &account.SignInNeeded{Reason: "you are not signed in, and no --url names a service: sign in with 'tollgate login'"}
	}
	return u.newAccount(a, u.last.Email)
}

// person returns somebody at a service.
func (u *publisher) newAccount(a serviceAddress, email string) (*account.Account, error) {
	client, err := tollgateclient.New(tollgateclient.Config{
		URL: a.url, InsecureHTTP: a.insecure,
		UserAgent: fmt.Sprintf("tollgate/%s (%s; %s)", buildVersion(), runtime.GOOS, runtime.GOARCH),
	})
	if err != nil {
		return nil, err
	}
	return account.New(u.file, client, email), nil
}

// as calls as a person, and where the session's trust is too low for it asks for a step-up and calls again.
func (u *publisher) callWithStepUp(ctx context.Context, who *account.Account, call func(ctx context.Context, token string) error) error {
	err := who.Do(ctx, call)
	if !tollgateclient.NeedsStepUp(err) {
		return err
	}
	if !u.isInteractive() {
		return &account.SignInNeeded{Reason: errorSentence(err) + ": sign in with 'tollgate login --step-up email'"}
	}
	u.printNote("%s", errorSentence(err))
	method, askErr := u.promptMethod(ctx)
	if askErr != nil {
		return askErr
	}
	if method == stepUpNone {
		return &account.SignInNeeded{Reason: errorSentence(err)}
	}
	if _, err := u.stepUp(ctx, who, method); err != nil {
		return err
	}
	return who.Do(ctx, call)
}

// about has a refusal name what it speaks of, where its sentence does not: the service knows from the path or the body
// what is meant, and the person may have given it a while ago, in a script.
func nameSubject(what string, err error) error {
	f, ok := fault.As(err)
	if !ok || strings.Contains(f.Message, what) {
		return err
	}
	switch f.Kind {
	case fault.Invalid, fault.NotFound, fault.Conflict:
		return fault.Wrap(f.Kind, f.Code, what+": "+f.Message, err)
	default: // of the person, or of the service
		return err
	}
}

// exitCode returns the code that a failure ends the program with.
func exitCode(err error) int {
	var needed *account.SignInNeeded
	if errors.As(err, &needed) {
		return exitSignIn
	}
	return exitFailed
}
