package federating

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Config holds the settings of company sign-in.
type Config struct {
	// Console is the address under which people reach the console, with a slash at the end. If it is
	// not public, an address of this machine under which a browser reached it counts instead.
	Console people.ConsoleURL
	Public  bool
	// PasswordsOff is true if no password is accepted.
	PasswordsOff bool
	// SessionTTL and SessionMaxAge are those of all sessions.
	SessionTTL, SessionMaxAge time.Duration
	// ReauthenticationMaxAge is how long a password or a code counts for a link (contract A-64).
	ReauthenticationMaxAge time.Duration
}

// Ports are the dependencies of a Service. All stores belong to one adapter, so that a transaction
// spans them.
type Ports struct {
	Providers    authstore.Providers
	Identities   authstore.Identities
	Passkeys     authstore.Passkeys
	Logins       authstore.Logins
	Accounts     authstore.Accounts
	Directory    authstore.Directory
	Sessions     authstore.Sessions
	Tokens       authstore.APITokens
	Links        authstore.Links
	Pending      authstore.PendingLogins
	Families     authorization.Families // of assertions, which end with their people; nil without any
	Transactions transaction.Runner
	Grants       authority.Granter

	Remote  identity.Providers
	SignIn  *signin.Service
	StepUp  *stepup.Service
	People  *people.Service
	Sealer  secrets.Sealer
	Used    singleuse.Store
	Notices *notices.Notifier
	Trail   *auditing.Trail
	Cache   sessioncache.Cache
	Waiter  clock.Waiter
	Clock   clock.Clock
	Entropy secrets.Entropy
	Root    auth.RootSecret // the keys of this package are derived from it
}

// Service signs people in at providers and links their identities. It is safe for concurrent use.
type Service struct {
	config Config
	ports  Ports
	// seals the cookie of sign-ins that have begun, and makes their nonces and verifiers.
	key auth.Key
}

// New returns a service. It returns an error if the root secret is too short.
func New(c Config, p Ports) (*Service, error) {
	key, err := p.Root.Derive("company sign-in")
	return &Service{c, p, key}, err
}

// Offer is a provider that people may sign in at.
type Offer struct {
	Name        company.Name
	DisplayName string
}

// Offered returns the providers at which a person with an e-mail address may sign in, or all without
// one, and whether a password may do. It depends on the domain of the address alone.
func (s *Service) Offered(ctx context.Context, email auth.Email) (offers []Offer, password bool, err error) {
	all, err := s.ports.Providers.List(ctx)
	if err != nil {
		return nil, false, err
	}
	for i := range all {
		if p := &all[i]; email == "" || p.SpeaksFor(email) {
			offers = append(offers, Offer{p.Name, p.DisplayName})
		}
	}
	return offers, !s.config.PasswordsOff && company.Enforcing(all, email) == nil, nil
}

// Up reports for each provider whether it worked when it was last needed, by whichever instance.
func (s *Service) Up(ctx context.Context) (map[company.Name]bool, error) {
	all, err := s.ports.Providers.List(ctx)
	up := make(map[company.Name]bool, len(all))
	for i := range all {
		up[all[i].Name] = !all[i].Condition.IsAway()
	}
	return up, err
}

// CheckUp returns fault.Unavailable if a provider did not work when it was last needed.
func (s *Service) CheckUp(ctx context.Context) error {
	up, _ := s.Up(ctx) // the check of the database reports its errors
	for name, works := range up {
		if !works {
			return fault.New(fault.Unavailable, string(name)+" is away")
		}
	}
	return nil
}

// find returns a provider as a client of it, for a browser that has reached the console under a
// base address.
func (s *Service) find(ctx context.Context, name, base string) (identity.Client, error) {
	all, err := s.ports.Providers.List(ctx)
	if err != nil {
		return identity.Client{}, err
	}
	if p := company.Named(all, name); p != nil {
		return s.client(p, base)
	}
	return identity.Client{}, fault.New(fault.NotFound, "there is no company sign-in with this name")
}

func (s *Service) client(p *company.Provider, base string) (identity.Client, error) {
	c := identity.Client{Provider: p, Redirect: s.redirect(p.Name, base)}
	if len(p.Secret) > 0 {
		secret, _, err := openSealed(s.ports.Sealer, p.Secret, providerSeal(p))
		if err != nil {
			return c, fault.Wrap(fault.Unavailable, "the secret of this company sign-in cannot be read: set it again", err)
		}
		c.ClientSecret = string(secret)
	}
	return c, nil
}

// Addresses returns what an operator registers at a provider: the address to which it sends people
// back, and the one for logout tokens. The base is as in Start.
func (s *Service) Addresses(name company.Name, base string) (redirect, logout string) {
	redirect = s.redirect(name, base)
	root, _, _ := strings.Cut(redirect, "/console/sign-in/")
	return redirect, root + "/auth/company/" + string(name) + "/logout"
}

// redirect returns the address to which a provider sends people back: one for each provider.
func (s *Service) redirect(name company.Name, base string) string {
	console := string(s.config.Console)
	if !s.config.Public && base != "" {
		console = base + "/console/"
	}
	return strings.TrimSuffix(console, "/") + "/sign-in/company/" + url.PathEscape(string(name)) + "/callback"
}

// ServeAt sets the address of the console, for a service on a port that the system chose. It must
// be called before the service is used.
func (s *Service) ServeAt(console people.ConsoleURL) { s.config.Console = console }

// sealing is what a sealed secret is about. A secret is given for one issuer: sealed with it, it cannot be
// read for another one, whichever path has changed the issuer. Earlier versions have sealed secrets
// without it (old); they are read, and sealed anew by resealAll and at the next check of a session.
type sealing struct{ about, old string }

// providerSeal returns what the secret of a client is about.
func providerSeal(p *company.Provider) sealing {
	old := "company provider " + string(p.Name)
	return sealing{old + " " + p.ClientID + " " + p.Issuer, old}
}

// refreshSeal returns what the refresh token of a login is about.
func refreshSeal(id company.LoginID, issuer string) sealing {
	old := "company refresh " + string(id)
	return sealing{old + " " + issuer, old}
}

// openSealed returns a sealed secret, and whether it was sealed without its issuer.
func openSealed(s secrets.Sealer, sealed auth.SealedSecret, of sealing) (secret []byte, old bool, err error) {
	if secret, err = s.Open(sealed, of.about); err == nil {
		return secret, false, nil
	}
	secret, err = s.Open(sealed, of.old)
	return secret, err == nil, err
}

// resealAfter is how long after its start an instance seals secrets anew: then none of an earlier version
// runs any more, which could not read them.
const resealAfter = 10 * time.Minute

// resealAll seals the secrets of providers anew that are sealed without their issuers.
func (s *Service) resealAll(ctx context.Context) error {
	return s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		all, err := s.ports.Providers.List(ctx)
		for i := 0; i < len(all) && err == nil; i++ {
			p := &all[i]
			secret, old, unreadable := openSealed(s.ports.Sealer, p.Secret, providerSeal(p))
			if len(p.Secret) == 0 || unreadable != nil || !old { // one of another key is set again by an operator
				continue
			}
			if p.Secret, err = s.ports.Sealer.Seal(secret, providerSeal(p).about); err == nil {
				err = s.ports.Providers.Save(ctx, *p)
			}
		}
		return err
	})
}
