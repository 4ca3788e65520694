package prometheus

import (
	"context"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
)

// Outcomes of logins and refreshes, except failures. The outcome of a refused login is the code of
// its error.
const (
	loginSucceeded   = "succeeded"    // a session started
	loginMFARequired = "mfa_required" // the password was correct, and a code is required

	refreshed       = "refreshed"
	refreshReplayed = "replayed" // the token was used before, so all sessions of the person were ended
	refreshExpired  = "expired"
	refreshInvalid  = "invalid" // the token is unknown, or its session has ended
)

// SignIn counts the outcomes of the steps of logins and of refreshes, and passes the calls on.
type SignIn struct {
	*signin.Service
	passkeys  *passkeys.Service
	logins    labelCounters
	refreshes labelCounters
}

// NewSignIn returns a service whose outcomes are counted.
func NewSignIn(s *signin.Service, p *passkeys.Service, r prometheus.Registerer) *SignIn {
	return &SignIn{
		Service: s, passkeys: p,
		logins: newLabelCounters(r, prometheus.CounterOpts{
			Name: "tollgate_logins_total",
			Help: "Steps of logins, by outcome.",
		}, "outcome", loginSucceeded, loginMFARequired, string(auth.CodeInvalidCredentials),
			string(auth.CodeInvalidMFA),
			string(auth.CodeAccountLocked), unavailable, failed),
		refreshes: newLabelCounters(r, prometheus.CounterOpts{
			Name: "tollgate_token_refreshes_total",
			Help: "Refreshes of tokens, by outcome.",
		}, "outcome", refreshed, refreshReplayed, refreshExpired, refreshInvalid, unavailable, failed),
	}
}

// Login runs the first step of a login and counts the outcome.
func (s *SignIn) Login(ctx context.Context, in signin.Login) (signin.Result, error) {
	r, err := s.Service.Login(ctx, in)
	s.logins.increment(loginOutcome(r, err))
	return r, err
}

// VerifyMFA runs the second step of a login and counts the outcome.
func (s *SignIn) VerifyMFA(ctx context.Context, in signin.MFAAnswer) (signin.Result, error) {
	r, err := s.Service.VerifyMFA(ctx, in)
	s.logins.increment(loginOutcome(r, err))
	return r, err
}

// Refresh refreshes a session and counts the outcome.
func (s *SignIn) Refresh(ctx context.Context, secret auth.RefreshSecret, from netip.Addr) (signin.Result, error) {
	r, err := s.Service.Refresh(ctx, secret, from)
	s.refreshes.increment(refreshOutcome(err))
	return r, err
}

// LoginByPasskey signs a person in with a passkey and counts the outcome.
func (s *SignIn) LoginByPasskey(ctx context.Context, in passkeys.Answer, from signin.Origin) (signin.Result, error) {
	r, err := s.passkeys.SignIn(ctx, in, from)
	s.logins.increment(loginOutcome(r, err))
	return r, err
}

func loginOutcome(r signin.Result, err error) string {
	switch code := faultCode(err); {
	case err == nil && r.MFARequired:
		return loginMFARequired
	case err == nil:
		return loginSucceeded
	case code == auth.CodeInvalidCredentials, code == auth.CodeInvalidMFA, code == auth.CodeAccountLocked:
		return string(code)
	}
	return failureLabel(err)
}

func refreshOutcome(err error) string {
	switch code := faultCode(err); {
	case err == nil:
		return refreshed
	case code == auth.CodeAccessDenied:
		return refreshReplayed
	case code == auth.CodeTokenExpired:
		return refreshExpired
	case code == auth.CodeInvalidToken:
		return refreshInvalid
	}
	return failureLabel(err)
}
