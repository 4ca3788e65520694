package person

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/tollgateclient/account"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/fault"
)

const (
	// ServerVariable is the variable with the address of the service that commands call.
	ServerVariable = "TOLLGATE_SERVER"
	// TokenVariable is the variable with the token of a person or of a service account.
	TokenVariable = "TOLLGATE_TOKEN" // #nosec G101 -- the name of a variable
	serverFlag    = "server"
)

// Target is the service that the flags of a command name.
type Target struct {
	process cli.Process
	flag    string // of --server
	caCert  string
	context string
}

// AddTarget adds the flags --server and --ca-cert to a command. A command that has a flag --server
// already gets its values that are no addresses.
func AddTarget(p cli.Process, c *cobra.Command) *Target {
	t := &Target{process: p}
	if own := c.Flags().Lookup(serverFlag); own != nil {
		own.Value = &addressOr{own.Value, &t.flag}
		own.Usage += "; or, if it is a URL, the address of the service to call"
	} else {
		c.Flags().StringVar(&t.flag, serverFlag, "",
			"address of the service to call, instead of opening the database; default: $"+ServerVariable)
	}
	addCACert(c, &t.caCert)
	addContext(c, &t.context)
	return t
}

// addressOr is the value of a flag that takes an address of a service too.
type addressOr struct {
	value interface {
		String() string
		Set(text string) error
		Type() string
	}
	address *string
}

func (a *addressOr) String() string { return a.value.String() }
func (a *addressOr) Type() string   { return a.value.Type() }

// Set sets the address, or the other value.
func (a *addressOr) Set(text string) error {
	if strings.Contains(text, "://") {
		*a.address = text
		return nil
	}
	return a.value.Set(text)
}

// Address returns the address of the service; empty without one and the command opens the database.
func (t *Target) Address() string {
	if t.flag != "" {
		return t.flag
	}
	if t.context != "" {
		u, err := newPublisher(t.process, t.context)
		if err != nil {
			return t.context // Open returns the error
		}
		return u.last.URL
	}
	return t.process.Getenv(ServerVariable)
}

// WantsService reports whether the arguments or the environment name a service, for a command that
// has the flag --server.
func WantsService(p cli.Process, c *cobra.Command) bool {
	flag := c.Flags().Lookup(serverFlag)
	if flag == nil || p.Getenv(ServerVariable) != "" {
		return flag != nil
	}
	if own, ok := flag.Value.(*addressOr); ok {
		return *own.address != "" || c.Flags().Changed(contextFlag)
	}
	return slices.ContainsFunc(p.Args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return name == "--"+serverFlag || name == "--"+contextFlag
	})
}

// Service is a service that a command calls: with the token in TOLLGATE_TOKEN, or with the session
// of the sign-in there.
type Service struct {
	*publisherRun

	who *account.Account
}

// Open returns the service of the flags; without an address, that of the last sign-in.
func (t *Target) Open() (*Service, error) {
	u, err := newPublisher(t.process, t.context)
	if err != nil {
		return nil, err
	}
	who, err := u.lastAccount(serviceAddress{url: t.Address(), caCert: t.caCert})
	return &Service{u, who}, err
}

// AddWeb adds the flag --web to a command, with which it opens the page of the console at a path in
// place of its work. It is added after the command is complete.
func AddWeb(p cli.Process, c *cobra.Command, path func(args []string) string) {
	web, run := c.Flags().Bool("web", false, "open the page of the console in a browser, or print its address"), c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !*web {
			return run(c, args)
		}
		t := &Target{process: p, flag: c.Flags().Lookup(serverFlag).Value.String(), context: c.Flags().Lookup(contextFlag).Value.String()}
		if own, ok := c.Flags().Lookup(serverFlag).Value.(*addressOr); ok {
			t.flag = *own.address
		}
		service, err := t.Open()
		if err == nil {
			service.openPage(c.Context(), service.who.Client().URL()+path(args), false)
		}
		return ExitError(err)
	}
}

// Call makes a call and decodes the answer into into, unless that is nil.
func (s *Service) Call(ctx context.Context, r tollgateclient.Request, into any) error {
	return s.As(ctx, func(ctx context.Context, token string) error {
		return s.who.Client().Call(ctx, token, r, into)
	})
}

// As makes a call with the token of the environment or of the session.
func (s *Service) As(ctx context.Context, call func(ctx context.Context, token string) error) error {
	return s.callWithStepUp(ctx, s.who, call)
}

// CallReader makes a call that reads the registry.
func (s *Service) CallReader(ctx context.Context, r tollgateclient.Request, into any) error {
	return s.read(ctx, s.who, func(ctx context.Context, token string) error {
		return s.who.Client().Call(ctx, token, r, into)
	})
}

// read makes a call that needs no sign-in at most services: with the token in TOLLGATE_TOKEN, else
// without one, and with the session if the service wants to know who reads.
func (u *publisherRun) read(
	ctx context.Context, who *account.Account, call func(ctx context.Context, token string) error,
) error {
	token := u.Getenv(TokenVariable)
	err := call(ctx, token)
	if token == "" && fault.Is(err, fault.Unauthenticated) {
		return who.Do(ctx, call)
	}
	return err
}

// List returns all items of a list, the member of the answers with a name.
func List[T any](send func(tollgateclient.Request, any) error, r tollgateclient.Request, member string) ([]T, error) {
	all := []T{}
	err := tollgateclient.ReadPages(r, member, send, func(items json.RawMessage) error {
		var page []T
		if err := json.Unmarshal(items, &page); err != nil {
			return fault.Wrap(fault.Internal, fmt.Sprintf("the service lists %s in another form", member), err)
		}
		all = append(all, page...)
		return nil
	})
	return all, err
}

// ExitError gives the error of a call to a service its exit code.
func ExitError(err error) error {
	var needed *account.SignInNeeded
	var coded *cli.CodedError
	code := cli.ExitFailed
	f, answered := fault.As(err)
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case errors.As(err, &needed), fault.Is(err, fault.Unauthenticated), tollgateclient.NeedsStepUp(err):
		code = cli.ExitSignIn
	case answered && (f.Kind == fault.Unavailable || f.Kind == fault.Internal):
		code = cli.ExitAway
	}
	return &cli.CodedError{Code: code, Err: err}
}
