// Package passkeys registers the passkeys of people, and checks them for sign-ins and step-ups. Package
// signin scores the sign-in and begins the session.
package passkeys

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/singleuse"
	"github.com/tollgate-dev/tollgate/ports/transaction"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

// Config holds the settings of passkeys.
type Config struct {
	PublicURL string // of the service; optional
	RPID      string // the host of PublicURL or a parent domain of it; empty for the host
	Name      string // of the service, shown to people
	// PasswordsOff is true if no password is accepted.
	PasswordsOff bool
	// ReauthenticationMaxAge is how long a password or a code counts for a new passkey (contract A-64).
	ReauthenticationMaxAge time.Duration
}

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	if c.RPID == "" {
		return nil
	}
	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Hostname() != c.RPID && !strings.HasSuffix(u.Hostname(), "."+c.RPID) {
		return fmt.Errorf("RPID: %q is neither the host of the public address nor a parent domain of it", c.RPID)
	}
	if suffix, _ := publicsuffix.PublicSuffix(c.RPID); suffix == c.RPID && u.Hostname() != c.RPID {
		return fmt.Errorf("RPID: %q is a suffix under which others have domains", c.RPID)
	}
	return nil
}

// localhost is the host that browsers trust without TLS.
const localhost = "localhost"

// Party returns the relying party for a client that has reached the service at an address, with
// scheme and host. It returns fault.Unsupported if browsers do not permit passkeys there
// (contract K-1).
func (c Config) Party(address string) (webauthn.Party, error) {
	base := c.PublicURL
	if base == "" {
		base = address
	}
	u, err := url.Parse(base)
	local := err == nil && u.Hostname() == localhost
	if err != nil || !local && (c.PublicURL == "" || u.Scheme != "https") {
		return webauthn.Party{}, fault.New(fault.Unsupported, "passkeys need https and a public address, or localhost")
	}
	p := webauthn.Party{ID: c.RPID, Origin: u.Scheme + "://" + u.Host, Name: c.Name}
	if p.ID == "" {
		p.ID = u.Hostname()
	}
	return p, nil
}

// Ports are the dependencies of a Service. All stores belong to one adapter, so that a transaction
// spans them.
type Ports struct {
	Passkeys    authstore.Passkeys
	Accounts    authstore.Accounts
	Identities  authstore.Identities
	Providers   authstore.Providers
	Sessions    authstore.Sessions
	Pending     authstore.PendingLogins
	Cache       sessioncache.Cache
	Transaction transaction.Runner

	Verifier webauthn.Verifier
	Used     singleuse.Store
	Trail    *auditing.Trail
	Notices  *notices.Notifier
	Clock    clock.Clock
	Entropy  secrets.Entropy
	Root     auth.RootSecret // the keys of this package are derived from it
}

// Service manages and checks passkeys. It is safe for concurrent use.
type Service struct {
	Config

	ports Ports
	key   auth.Key // seals ceremonies, and makes the handles of people
}

// New returns a service. It returns an error if a setting is out of range or the root secret is too
// short.
func New(c Config, p Ports) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	key, err := p.Root.Derive("passkeys")
	return &Service{c, p, key}, err
}

// handle returns the handle of a person: 64 bytes that only this service can compute.
func (s *Service) handle(user auth.UserID) (h auth.PasskeyHandle) {
	first, second := s.key.Sum("handle 1 "+string(user)), s.key.Sum("handle 2 "+string(user))
	copy(h[:], first[:])
	copy(h[len(first):], second[:])
	return h
}

// List returns the passkeys of a person, the oldest first.
func (s *Service) List(ctx context.Context, user auth.UserID) ([]auth.Passkey, error) {
	return s.ports.Passkeys.Of(ctx, user)
}

// CeremonyID names a registration or a sign-in that has begun. The service keeps nothing about it:
// the id is sealed, and good once.
type CeremonyID string

// Options are what a browser needs to call an authenticator.
type Options struct {
	Party     webauthn.Party
	Challenge [32]byte
	// Credentials are those that must not be registered again, or that may sign. None may be named
	// at a sign-in, because the person is not known.
	Credentials []auth.Credential
	Handle      auth.PasskeyHandle // of a registration
	Person      auth.Account       // of a registration
}

// Started is a ceremony that has begun.
type Started struct {
	Options

	ID        CeremonyID
	ExpiresAt time.Time
}

// ceremony is what a CeremonyID holds.
type ceremony struct {
	Session   auth.SessionID    // in which a passkey is registered; empty for a sign-in
	Device    auth.DeviceFields // of a sign-in
	Challenge []byte
	At        time.Time
}

const (
	ceremonyPurpose = "ceremony"
	challengeLength = 32
)

func (s *Service) start(party webauthn.Party, c ceremony) (Started, error) {
	c.Challenge, c.At = make([]byte, challengeLength), s.ports.Clock.Now()
	s.ports.Entropy.Fill(c.Challenge)
	text, err := json.Marshal(c)
	if err != nil {
		return Started{}, err
	}
	sealed, err := s.key.Seal(secrets.NewNonce(s.ports.Entropy), text, ceremonyPurpose)
	return Started{
		Options: Options{Party: party, Challenge: c.challenge()},
		ID:      CeremonyID(base64.RawURLEncoding.EncodeToString(sealed)), ExpiresAt: c.At.Add(auth.PasskeyTTL),
	}, err
}

// take uses up a ceremony of a session, or of a sign-in, and returns it. Of parallel
// calls, on all instances, one succeeds. The error is fault.Unauthenticated for any other ceremony.
func (s *Service) take(ctx context.Context, id CeremonyID, session auth.SessionID) (c ceremony, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(string(id))
	if err == nil {
		var text []byte
		if text, err = s.key.Open(sealed, ceremonyPurpose); err == nil {
			err = json.Unmarshal(text, &c)
		}
	}
	alive := auth.Alive(c.At.Add(auth.PasskeyTTL), s.ports.Clock.Now(), auth.PasskeyTTL)
	if err != nil || c.Session != session || !alive || len(c.Challenge) != challengeLength {
		return ceremony{}, errRefused()
	}
	first, err := s.ports.Used.Claim(ctx, "passkey:"+string(c.Challenge), auth.PasskeyTTL+auth.ClockTolerance)
	if err == nil && !first {
		err = errRefused()
	}
	return c, err
}

func (c *ceremony) challenge() [challengeLength]byte { return [challengeLength]byte(c.Challenge) }

func errRefused() error { return fault.New(fault.Unauthenticated, "the passkey is not accepted") }
