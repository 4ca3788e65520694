// Package pairing gives a command a session of its own, which the person of the command has approved
// in a browser: an authorisation code with PKCE (RFC 8252, RFC 7636). It does not sign people in in
// the browser; packages signin and federating do.
package pairing

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// How long a code is good (contract A-79).
const (
	codeTTL   = time.Minute     // the browser brings it at once
	copiedTTL = 5 * time.Minute // a person copies it
)

// Ports are the dependencies of a Service. All stores belong to one adapter, so that a transaction
// spans them.
type Ports struct {
	Links    authstore.Links
	Sessions authstore.Sessions
	Accounts authstore.Accounts
	Logins   authstore.Logins
	SignIn   *signin.Service
	Clock    clock.Clock
	Entropy  secrets.Entropy
}

// Service makes and exchanges codes. It is safe for concurrent use.
type Service struct {
	recent time.Duration // how long a password or a code counts
	ports  Ports
}

// New returns a service.
func New(c credentials.Config, p Ports) *Service { return &Service{c.ReauthenticationMaxAge, p} }

// Approve returns a code with which the command of a request gets a session of the person. It must
// be called for an act of the person.
func (s *Service) Approve(ctx context.Context, by auth.Session, r Request) (auth.LinkSecret, error) {
	now, ttl := s.ports.Clock.Now(), codeTTL
	if r.Redirect == "" {
		ttl = copiedTTL
	}
	code := secrets.NewSecret[auth.LinkSecret](s.ports.Entropy) + "." + auth.LinkSecret(by.ID)
	return code, s.ports.Links.Put(ctx, auth.Link{
		Hash: hashOf(code, r.Challenge, r.Redirect), Purpose: auth.LinkCommand, UserID: by.UserID,
		CreatedAt: now, ExpiresAt: now.Add(ttl),
	})
}

// hashOf returns the hash under which a code is stored. Only the request that it was made for has
// the same one.
func hashOf(code auth.LinkSecret, challenge, redirect string) auth.TokenHash {
	return auth.HashSecret(code + auth.LinkSecret(" "+challenge+" "+redirect))
}

// Exchange is a code that a command has got, and what shows that it has sent the request.
type Exchange struct {
	Code     auth.LinkSecret
	Verifier string
	Redirect string // as in the request
	From     signin.Origin
}

// Exchange begins a session of a command, and returns it with the e-mail address of its person. The
// error is fault.Invalid for a verifier of the wrong form, and fault.Unauthenticated with code
// invalid_credentials for a code that is unknown, used, expired or of another request, and after the
// end of the session in which it was approved.
func (s *Service) Exchange(ctx context.Context, in Exchange) (r signin.Result, email auth.Email, err error) {
	if !verifierForm.MatchString(in.Verifier) {
		return r, "", auth.InvalidField(auth.CodeValidation, "codeVerifier", "must be 43 to 128 letters and digits")
	}
	var by auth.Session
	r, err = s.ports.SignIn.Start(ctx, in.From, func(ctx context.Context) (_ signin.Admitted, err error) {
		if by, err = s.take(ctx, in); err != nil {
			return signin.Admitted{}, err
		}
		admitted, err := s.admit(ctx, &by, in.Redirect == "")
		email = admitted.Account.Email
		return admitted, err
	})
	if fault.Is(err, fault.NotFound) {
		if err := s.ports.SignIn.RecordCode(ctx, in.From, by.UserID); err != nil {
			return r, "", err
		}
		err = fault.New(fault.Unauthenticated, "the code is wrong, was used, or has expired: begin again with 'tollgate login'").
			WithCode(auth.CodeInvalidCredentials)
	}
	return r, email, err
}

// take uses a code up, and returns the session in which it was approved. Of parallel calls, on all
// instances, one succeeds. It returns fault.NotFound for a code that is not good.
func (s *Service) take(ctx context.Context, in Exchange) (by auth.Session, err error) {
	sum := sha256.Sum256([]byte(in.Verifier))
	hash := hashOf(in.Code, base64.RawURLEncoding.EncodeToString(sum[:]), in.Redirect)
	l, err := s.ports.Links.Find(ctx, hash)
	if err == nil {
		err = s.ports.Links.Take(ctx, hash)
	}
	if err == nil {
		_, id, _ := strings.Cut(string(in.Code), ".")
		by, err = s.ports.Sessions.Get(ctx, auth.SessionID(id))
	}
	now := s.ports.Clock.Now()
	if err == nil && (l.Purpose != auth.LinkCommand || !auth.Alive(l.ExpiresAt, now, copiedTTL) || !by.Active(now)) {
		err = auth.NotFound("code")
	}
	return by, err
}

// admit returns what a command gets of a session that has approved it. It locks the row of the
// account, so that its state cannot change during the transaction of the context.
func (s *Service) admit(ctx context.Context, by *auth.Session, copied bool) (a signin.Admitted, err error) {
	a.Most = by.TrustLevel
	// A copied code may be for a command that another person has started.
	if !copied && by.TrustLevel == auth.FullTrust && trust.RequireRecent(by, s.ports.Clock.Now(), s.recent) == nil {
		a.Factor = auth.FactorBrowser
	}
	err = s.ports.Accounts.Update(ctx, by.UserID, func(stored *auth.Account) error {
		if a.Account = *stored; a.Account.State != auth.AccountActive {
			return auth.NotFound("account")
		}
		return nil
	})
	if err == nil {
		err = s.copyLogin(ctx, &a, by)
	}
	return a, err
}

// copyLogin gives the session of the command the sign-in at a provider from which a session came, so
// that it ends with the person's sign-in there. The refresh token stays where it is, so the session of
// the command ends when the one in the browser would end without another check.
func (s *Service) copyLogin(ctx context.Context, a *signin.Admitted, by *auth.Session) error {
	found, err := s.ports.Logins.Find(ctx, authstore.LoginQuery{At: s.ports.Clock.Now(), Session: by.ID, Limit: 1})
	if err != nil || len(found) == 0 {
		return err
	}
	a.Login, a.Until = found[0], by.MaxExpiresAt
	a.Login.ID, a.Login.Refresh, a.Login.RecheckAt = secrets.NewUUID[company.LoginID](s.ports.Entropy), nil, time.Time{}
	return nil
}

const maxRedirect = 100 // bytes

var (
	challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	verifierForm  = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`) // RFC 7636, section 4.1
	stateForm     = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
)

// Request is what a command sends with the browser (RFC 7636, section 4.3). Without a redirect the
// person copies the code.
type Request struct{ Challenge, Method, Redirect, State string }

// Check returns fault.Invalid for a challenge that is not one of S256, and for a redirect that does
// not lead to a port of the machine of the browser (RFC 8252, section 7.3).
func (r Request) Check() error {
	switch {
	case r.Method != "S256":
		return fault.New(fault.Invalid, "code_challenge_method must be S256")
	case !challengeForm.MatchString(r.Challenge):
		return fault.New(fault.Invalid, "code_challenge must be 43 characters of base64url")
	case r.Redirect != "" && !stateForm.MatchString(r.State):
		return fault.New(fault.Invalid, "state must be 1 to 128 letters and digits")
	case r.Redirect != "" && r.Origin() == "":
		return fault.New(fault.Invalid, "redirect_uri must be http://127.0.0.1:PORT/… or http://[::1]:PORT/…")
	}
	return nil
}

// Origin returns the origin of the redirect; empty if it is not a port of the machine itself. A name
// like localhost may lead elsewhere (RFC 8252, section 8.3).
func (r Request) Origin() string {
	u, err := url.Parse(r.Redirect)
	if err != nil || len(r.Redirect) > maxRedirect || u.String() != r.Redirect || u.Scheme != "http" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return ""
	}
	host, err := netip.ParseAddrPort(u.Host)
	local := host.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || host.Addr() == netip.IPv6Loopback()
	if err != nil || !local || host.Port() == 0 {
		return ""
	}
	return "http://" + u.Host
}

// Approved returns the address at which the command gets a code.
func (r Request) Approved(code auth.LinkSecret) string { return r.answer("code", string(code)) }

// Denied returns the address at which the command learns that the person has refused (RFC 6749,
// section 4.1.2.1).
func (r Request) Denied() string { return r.answer("error", "access_denied") }

func (r Request) answer(name, value string) string {
	return r.Redirect + "?" + url.Values{name: {value}, "state": {r.State}}.Encode()
}
