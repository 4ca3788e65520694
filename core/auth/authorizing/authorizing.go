// Package authorizing has the use cases of the authorization server: it answers authorization requests of
// clients after the person has signed in and agreed, and issues, renews, examines and ends tokens. At
// each step it checks again that the server is listed and that the person may call it.
package authorizing

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/netip"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Config holds the settings of the authorization server.
type Config struct {
	On            bool
	Issuer        string        // the origin of the service as clients see it
	Clients       Clients       // which clients there may be
	Hosts         []string      // of documents, or their whole URLs, with ClientsOfHosts
	AllListed     bool          // every https remote of a listed version is a resource
	AlwaysAsk     bool          // a consent is not remembered
	ReuseGrace    time.Duration // how long a repeated refresh gets the same successor; may be 0
	ReuseByClient bool          // an ID-JAG may be used again by the same client

	// SessionTTL and SessionMaxAge are those of all sessions, which a refresh extends.
	SessionTTL, SessionMaxAge time.Duration
}

// Clients says which clients there may be (contract T-6).
type Clients string

// The values of Clients.
const (
	ClientsRegistered Clients = "registered"
	ClientsOfHosts    Clients = "hosts"
	ClientsOpen       Clients = "open"
)

// Admit returns the person of the verified claims of an assertion of a provider, who may be new. It
// returns fault.Forbidden, with the reason, for somebody who may not sign in.
type Admit func(ctx context.Context, p *company.Provider, c *company.Claims) (auth.UserID, error)

// Ports are the dependencies of a Service. All stores belong to one adapter, so that a transaction
// spans them.
type Ports struct {
	Clients   management.Store[oauth.ClientID, oauth.Client]
	Resources management.Store[oauth.ResourceName, oauth.Resource]
	Requests  authorization.Requests
	Families  authorization.Families
	Secrets   authorization.Secrets
	Consents  authorization.Consents
	Sightings authorization.Sightings

	Accounts     authstore.Accounts
	Sessions     authstore.Sessions
	Identities   authstore.Identities
	Providers    authstore.Providers
	Changes      authstore.Changes
	Transactions transaction.Runner

	Gate       authorization.Gate
	Documents  authorization.Documents
	Assertions identity.Assertions
	Admit      Admit
	Signer     secrets.TokenSigner
	Verifier   secrets.TokenVerifier
	Throttle   throttle.Throttle
	Used       singleuse.Store
	Trail      *auditing.Trail
	Clock      clock.Clock
	Entropy    secrets.Entropy
	Root       auth.RootSecret // the keys of this package are derived from it
}

// Service is the authorization server. It is safe for concurrent use.
type Service struct {
	config Config
	ports  Ports

	successorKey auth.Key
	declared     access.Recent[struct{}, []oauth.Resource]
	seen         recent.Memory[oauth.ClientID, [sha256.Size]byte] // documents, as they were noted last
}

// New returns the authorization server. It returns an error if the root secret is too short.
func New(c Config, p Ports) (*Service, error) {
	key, err := p.Root.Derive("oauth refresh successors")
	if err != nil {
		return nil, err
	}
	return &Service{
		config: c, ports: p, successorKey: key,
		declared: access.Recent[struct{}, []oauth.Resource]{Changes: p.Changes},
	}, nil
}

// Begun is an authorization request that is kept.
type Begun struct {
	ID      auth.LinkSecret // for the address of its pages
	Browser auth.LinkSecret // for the cookie of the browser
}

// Redirect is the error of a request that goes back to the client: its address has the error.
type Redirect struct{ URL string }

// Error implements error.
func (r *Redirect) Error() string { return "the request is refused, and the client is told" }

// Visit is what a browser sends to the pages of a request.
type Visit struct {
	ID      auth.LinkSecret
	Browser auth.LinkSecret
	Session auth.Session // its ID is empty if no one is signed in
	From    netip.Addr
}

// Step is what a person does next.
type Step uint8

// The steps.
const (
	SignIn Step = iota // sign in, again if the session is too old
	StepUp             // reach Next.Level, or sign in anew within the session
	Ask                // agree or not
	Leave              // go to Next.URL
)

// Next is what a person does next.
type Next struct {
	Step      Step
	Level     auth.TrustLevel // of StepUp
	LoginHint string          // of SignIn
	URL       string          // of Leave
	Client    string          // the name of the client
	Consent   *Consent        // of Ask
}

// Consent is what a person is asked to agree to (contract T-13).
type Consent struct {
	Client     string // its name
	ClientHost string // of its id; empty for one that is registered here
	Host       string // of the redirect URI
	Local      bool   // all redirect URIs are on this computer
	Resource   string
	Servers    []oauth.Server
	Registry   bool // the resource is this registry
	Scopes     []string
}

// TokenRequest is a request of a client at one of its endpoints.
type TokenRequest struct {
	Form  url.Values
	Basic *BasicCredentials // of the header Authorization; nil without it
	From  netip.Addr
}

// BasicCredentials are those of a client, decoded (RFC 6749, section 2.3.1).
type BasicCredentials struct{ ID, Secret string }

// Tokens is what the token endpoint returns.
type Tokens struct {
	Access    auth.AccessToken
	Refresh   auth.RefreshSecret // empty without one
	ExpiresIn time.Duration
	Scopes    []string
}

// Introspection is what a tool server learns of a token; nil fields do not exist (RFC 7662).
type Introspection struct {
	Active    bool
	Claims    oauth.Claims
	Subject   auth.UserID
	Session   auth.SessionID
	ID        string
	IssuedAt  time.Time
	ExpiresAt time.Time
}

// Application is a client with access, for the person who granted it.
type Application struct {
	oauth.Family

	Servers []oauth.Server
}

// Metadata is what clients need to know (contract T-2).
type Metadata struct {
	Issuer     string
	Documents  bool // clients by document
	Assertions bool // a provider has idJag
}

// maxApplications is how many applications of a person are shown.
const maxApplications = 200

// Applications returns the applications of a person, the newest first.
func (s *Service) Applications(ctx context.Context, user auth.UserID) ([]Application, error) {
	families, err := s.ports.Families.Active(ctx, user, s.ports.Clock.Now(), maxApplications)
	if err != nil {
		return nil, err
	}
	all := make([]Application, len(families))
	for i := range families {
		all[i].Family = families[i]
		t, err := s.findTarget(ctx, families[i].Resource, nil)
		var closed no
		if err != nil && !errors.As(err, &closed) {
			return nil, err
		}
		all[i].Servers = t.servers
	}
	return all, nil
}

// Remove ends an application of a person, and what was agreed with its client. It returns fault.NotFound.
func (s *Service) Remove(ctx context.Context, session auth.Session, id oauth.FamilyID) error {
	f, err := s.ports.Families.Get(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && f.UserID != session.UserID {
		return auth.NotFound("application")
	}
	if err != nil {
		return err
	}
	return s.end(ctx, &f, session.IPAddress, true)
}

// Metadata returns what clients need to know.
func (s *Service) Metadata(ctx context.Context) (Metadata, error) {
	all, err := s.asserting(ctx)
	return Metadata{
		Issuer: s.config.Issuer, Documents: s.config.Clients != ClientsRegistered, Assertions: len(all) > 0,
	}, err
}
