package stepup

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Opened is a challenge of COMPANY whose address was opened.
type Opened struct {
	auth.Challenge

	Session  auth.Session // that it raises
	Provider company.Provider
	Identity company.Identity // of the person at the provider
}

// Open returns the challenge to which an address with a one-time code leads. The code is good until
// the challenge is passed. The error is that of Verify for a challenge that cannot be passed; the one
// for a wrong code is that for an unknown challenge.
func (s *Service) Open(ctx context.Context, id auth.ChallengeID, code auth.OTP) (o Opened, err error) {
	now := s.ports.Clock.Now()
	o.Challenge, err = s.ports.Challenges.Get(ctx, id)
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return o, err
	case err != nil, o.Method != auth.CompanySignIn, !s.isCode(&o.Challenge, code), o.State != auth.ChallengeOpen,
		!auth.Alive(o.ExpiresAt, now, s.config.CodeTTL):
		return o, errChallenge()
	case o.Attempts >= s.config.Attempts:
		return o, s.errNoAttemptLeft(o.ExpiresAt.Sub(now))
	}
	if o.Session, err = s.ports.Sessions.Get(ctx, o.SessionID); err != nil {
		return o, err
	}
	if !o.Session.Active(now) {
		return o, errChallenge()
	}
	o.Provider, o.Identity, err = s.findCompany(ctx, o.UserID)
	return o, err
}

// findCompany returns a provider that shows second factors, with the identity of a person there, or
// an error of errMethod.
func (s *Service) findCompany(ctx context.Context, user auth.UserID) (company.Provider, company.Identity, error) {
	found, err := s.ports.Identities.Of(ctx, user)
	if err != nil || len(found) == 0 {
		return company.Provider{}, company.Identity{}, orMissing(err)
	}
	all, err := s.ports.Providers.List(ctx)
	for _, i := range found {
		for k := range all {
			if all[k].Issuer == i.Issuer && all[k].ShowsSecondFactor() {
				return all[k], i, nil
			}
		}
	}
	return company.Provider{}, company.Identity{}, orMissing(err)
}

func orMissing(err error) error {
	if err == nil {
		err = errMethod("needs a company sign-in with a second factor")
	}
	return err
}

// checkCompany reports whether the answer of a provider passes the challenge. A code never does.
func (t *verification) checkCompany(ctx context.Context) (bool, error) {
	if t.Check == nil {
		return false, nil
	}
	err := t.Check(ctx, &t.challenge)
	if f, ok := fault.As(err); ok && f.Kind == fault.Unauthenticated {
		t.wrong = f
		return false, nil
	}
	return err == nil, err
}
