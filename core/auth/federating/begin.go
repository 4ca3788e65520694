package federating

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// The bounds of sign-ins that have begun.
const (
	// BegunTTL is how long a sign-in may take.
	BegunTTL  = 10 * time.Minute
	maxBegun  = 5   // of one browser; the oldest falls out
	maxReturn = 300 // bytes of the page to go on with
)

// Cookie is what a browser keeps about the sign-ins that it has begun. It is sealed.
type Cookie string

// begun is a sign-in that has begun.
type begun struct {
	State    string
	Provider company.Name
	Return   string
	Link     auth.SessionID   // whose person links an identity; empty for a sign-in
	StepUp   auth.ChallengeID // that it passes; empty for a sign-in
	Found    *Found           // what the person is asked about; nil before the provider's answer
	At       time.Time
}

// Start is a request of a browser to begin a sign-in.
type Start struct {
	Provider string
	Return   string         // the page to go on with
	Link     *auth.Session  // whose person links an identity; nil for a sign-in
	StepUp   *stepup.Opened // the step-up that it is for; nil for a sign-in
	Cookie   Cookie
	Base     string // the address of this machine under which the browser reached the service; or empty
}

// Begin begins a sign-in. It returns the address of the provider's page and the new cookie. The
// error is fault.NotFound for an unknown provider, fault.Unavailable if it is away, and for a link that
// of trust.RequireProven.
func (s *Service) Begin(ctx context.Context, in Start) (address string, c Cookie, err error) {
	client, err := s.find(ctx, in.Provider, in.Base)
	if err != nil {
		return "", "", err
	}
	one := begun{
		State: newState(s.ports.Entropy), Provider: client.Name, Return: in.Return, At: s.ports.Clock.Now(),
	}
	if len(one.Return) > maxReturn {
		one.Return = ""
	}
	request := identity.Request{
		State: one.State, Nonce: s.derived("nonce", one.State), Verifier: s.derived("verifier", one.State),
	}
	if in.Link != nil {
		one.Link = in.Link.ID
		if _, err := s.requireLinker(ctx, in.Link.ID, s.config.ReauthenticationMaxAge); err != nil {
			return "", "", err
		}
	}
	if in.StepUp != nil {
		one.StepUp, request.Extra = in.StepUp.ID, stepUpParameters(in.StepUp)
	}
	address, err = s.ports.Remote.Authorize(ctx, client, request)
	if err != nil {
		s.noteProblem(ctx, client.Provider, err)
		return "", "", err
	}
	c, err = s.add(in.Cookie, one)
	return address, c, err
}

// add returns a cookie with one more sign-in.
func (s *Service) add(c Cookie, one begun) (Cookie, error) {
	all := append(s.open(c), one)
	return s.seal(all[max(0, len(all)-maxBegun):])
}

func newState(e secrets.Entropy) string {
	var random [32]byte
	e.Fill(random[:])
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// derived returns a value of 256 bits that belongs to a state, and that no one else can compute.
func (s *Service) derived(purpose, state string) string {
	sum := s.key.Sum(purpose + " " + state)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// open returns the sign-ins of a cookie that have not expired. An invalid cookie has no sign-ins.
func (s *Service) open(c Cookie) (all []begun) {
	sealed, err := base64.RawURLEncoding.DecodeString(string(c))
	if err != nil {
		return nil
	}
	text, err := s.key.Open(sealed, "cookie")
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil
	}
	now := s.ports.Clock.Now()
	return slices.DeleteFunc(all, func(b begun) bool { return !auth.Alive(b.At.Add(BegunTTL), now, BegunTTL) })
}

func (s *Service) seal(all []begun) (Cookie, error) {
	if len(all) == 0 {
		return "", nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	sealed, err := s.key.Seal(secrets.NewNonce(s.ports.Entropy), text, "cookie")
	return Cookie(base64.RawURLEncoding.EncodeToString(sealed)), err
}

// take returns the sign-in that is wanted, and the cookie without it. Of parallel calls for a purpose, on
// all instances, one succeeds. The error is fault.Invalid if the browser has not begun it.
func (s *Service) take(ctx context.Context, c Cookie, purpose string, wanted func(begun) bool) (begun, Cookie, error) {
	all := s.open(c)
	n := slices.IndexFunc(all, wanted)
	if n < 0 {
		return begun{}, c, errState()
	}
	one := all[n]
	rest, err := s.seal(slices.Delete(all, n, n+1))
	if err != nil {
		return begun{}, c, err
	}
	first, err := s.ports.Used.Claim(ctx, purpose+" "+one.State, BegunTTL+auth.ClockTolerance)
	if err == nil && !first {
		err = errState()
	}
	return one, rest, err
}

func errState() error {
	return fault.New(fault.Invalid,
		"this sign-in was not begun in this browser, took too long, or is complete already; begin again")
}
