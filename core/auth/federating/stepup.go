package federating

import (
	"context"
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// StepUpPath is the path below that of the console under which the addresses of step-ups at a
// provider are.
const StepUpPath = "step-up/company/"

// Raised is a session whose step-up at a provider has succeeded.
type Raised struct {
	stepup.Passed

	Session auth.SessionID
}

// StepUpAddress returns the address that a person opens for a challenge of COMPANY.
func (s *Service) StepUpAddress(p *stepup.Pending) string {
	return strings.TrimSuffix(string(s.config.Console), "/") + "/" + StepUpPath + string(p.ID) +
		"?code=" + url.QueryEscape(string(p.Opens))
}

// stepUpParameters return what a provider gets so that the same person signs in again, with a second
// factor (OpenID Connect Core 1.0, section 3.1.2.1).
func stepUpParameters(o *stepup.Opened) map[string]string {
	all := map[string]string{"max_age": "0", "login_hint": string(o.Identity.Email)}
	if o.Identity.Email == "" {
		delete(all, "login_hint")
	}
	if len(o.Provider.ACR) > 0 {
		all["acr_values"] = strings.Join(o.Provider.ACR, " ")
	}
	return all
}

// stepUp passes the challenge of a step-up if the person of its session has signed in with a second
// factor since it began. The error is that of stepup.Verify. A refused ID token counts as a wrong
// answer; other refusals of readAnswer are returned as they are.
func (s *Service) stepUp(
	ctx context.Context, id auth.ChallengeID, p *company.Provider, c *company.Claims, refused error,
) (*Raised, error) {
	if refused != nil && !fault.Is(refused, fault.Unauthenticated) {
		return nil, refused
	}
	raised := &Raised{}
	check := func(ctx context.Context, challenge *auth.Challenge) error {
		raised.Session = challenge.SessionID
		if refused != nil {
			return refused
		}
		return s.checkStepUp(ctx, challenge, p, c)
	}
	var err error
	if raised.Passed, err = s.ports.StepUp.Verify(ctx, stepup.Answer{ID: id, Check: check}); err != nil {
		return nil, err
	}
	s.noteSuccess(ctx, p, c.Groups.Problem, c)
	return raised, nil
}

// checkStepUp returns the error of company.Reject unless claims pass a challenge.
func (s *Service) checkStepUp(ctx context.Context, challenge *auth.Challenge, p *company.Provider, c *company.Claims) error {
	found, err := s.ports.Identities.Find(ctx, c.Issuer, c.Subject)
	switch {
	case err != nil && !fault.Is(err, fault.NotFound):
		return err
	case err != nil || found.UserID != challenge.UserID:
		return company.Reject("other_identity", "another person has signed in at the company")
	case !c.HasSecondFactor(p, s.ports.Clock.Now()):
		return company.Reject("no_second_factor", "the company has not checked a second factor")
	case !c.AuthenticatedSince(challenge.CreatedAt):
		return company.Reject("old_sign_in", "the company has not asked you to sign in again")
	}
	return nil
}
