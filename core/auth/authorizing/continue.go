package authorizing

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Continue returns what the person does next. It returns fault.NotFound for a request that is unknown,
// has expired, or is of another browser, and the errors of Begin if the client has changed since.
func (s *Service) Continue(ctx context.Context, v Visit) (Next, error) {
	p, err := s.find(ctx, v)
	if err != nil {
		return Next{}, err
	}
	return s.proceed(ctx, p, false)
}

// Decide answers the question of a consent, and returns the way back to the client. The errors are those
// of Continue. If something has changed since the question, it returns what Continue does.
func (s *Service) Decide(ctx context.Context, v Visit, agreed bool) (Next, error) {
	if !agreed {
		return s.endRequest(ctx, v, no{oauth.CodeAccessDenied, "the person has not agreed"})
	}
	p, err := s.find(ctx, v)
	if err != nil {
		return Next{}, err
	}
	return s.proceed(ctx, p, true)
}

// GiveUp is Decide for a person who cannot verify the sign-in as the client needs (contract T-11).
func (s *Service) GiveUp(ctx context.Context, v Visit) (Next, error) {
	return s.endRequest(ctx, v, no{oauth.CodeUnmetAuthentication, "the person could not verify the sign-in"})
}

// endRequest ends the request of a visit with an error for the client.
func (s *Service) endRequest(ctx context.Context, v Visit, refusal no) (Next, error) {
	p, err := s.find(ctx, v)
	if err != nil {
		return Next{}, err
	}
	return s.turnAway(ctx, p, refusal)
}

// pending is a request that a person visits.
type pending struct {
	visit   Visit
	request oauth.Request
	client  oauth.Client
	now     time.Time

	target  target
	session auth.Session // as it is stored; its ID is empty without one
	scopes  []string
}

// find returns the request of a visit. The errors are those of Continue.
func (s *Service) find(ctx context.Context, v Visit) (*pending, error) {
	r, err := s.ports.Requests.Find(ctx, auth.HashSecret(v.ID))
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	browser, now := auth.HashSecret(v.Browser), s.ports.Clock.Now()
	own := subtle.ConstantTimeCompare(browser[:], r.Browser[:]) == 1
	if err != nil || !own || !auth.Alive(r.ExpiresAt, now, oauth.RequestTTL) {
		return nil, auth.NotFound("request")
	}
	client, err := s.findSender(ctx, r.Client, r.RedirectURI, v.From)
	if err != nil {
		return nil, err
	}
	p := &pending{visit: v, request: r, client: client, now: now}
	if v.Session.ID == "" {
		return p, nil
	}
	p.session, err = s.ports.Sessions.Get(ctx, v.Session.ID)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	if !p.session.Active(now) || p.session.UserID != v.Session.UserID {
		p.session = auth.Session{}
	}
	return p, err
}

// proceed returns what the person does next; if that is nothing, or to agree and the person has, it
// issues a code.
func (s *Service) proceed(ctx context.Context, p *pending, agreed bool) (Next, error) {
	next, err := s.nextOf(ctx, p)
	var refusal no
	if err == nil && next.Step != Leave && p.request.Prompts(oauth.PromptNone) {
		err = map[Step]no{
			SignIn: {oauth.CodeLoginRequired, "the person must sign in"},
			StepUp: {oauth.CodeUnmetAuthentication, "the person must sign in again, or verify the sign-in"},
			Ask:    {oauth.CodeConsentRequired, "the person must agree"},
		}[next.Step]
	}
	switch {
	case errors.As(err, &refusal):
		return s.turnAway(ctx, p, refusal)
	case err != nil:
		return Next{}, err
	case next.Step == Leave || next.Step == Ask && agreed:
		return s.grant(ctx, p, next.Step == Ask)
	}
	next.Client = p.client.Name
	return next, nil
}

// nextOf returns the step that the person has not done yet; Leave if all are done. The error is no if the
// person may not have a token.
func (s *Service) nextOf(ctx context.Context, p *pending) (next Next, err error) {
	r := &p.request
	if p.target, err = s.findTarget(ctx, r.Resource, &p.client); err != nil {
		return next, err
	}
	p.scopes = oauth.CommonScopes(r.Scopes, p.target.Scopes)
	if len(p.scopes) == 0 && len(r.Scopes) > 0 {
		return next, no{oauth.CodeInvalidScope, "the resource has no scope of the request any more"}
	}
	if p.session.ID == "" || r.Prompts(oauth.PromptLogin) && p.session.Authenticated().Before(r.CreatedAt) {
		return Next{Step: SignIn, LoginHint: r.LoginHint}, nil
	}
	if _, err := s.findStanding(ctx, &oauth.Family{UserID: p.session.UserID, SessionID: p.session.ID}); err != nil {
		var refusal no
		if errors.As(err, &refusal) {
			refusal.code = oauth.CodeAccessDenied
			return next, refusal
		}
		return next, err
	}
	least, err := s.permit(ctx, &p.target, authorization.Question{
		UserID: p.session.UserID, Client: r.Client, From: p.visit.From,
	})
	if err != nil {
		return next, err
	}
	if need := max(p.target.needed(least), r.Level); !p.session.TrustLevel.Admits(need) || p.isOld() {
		return Next{Step: StepUp, Level: need}, nil
	}
	return s.askOrLeave(ctx, p)
}

// isOld reports whether the person has signed in too long ago for max_age. What was since the request
// began is never too long ago.
func (p *pending) isOld() bool {
	at := p.session.Authenticated()
	age := p.now.Sub(at)
	return p.request.MaxAge >= 0 && (age > p.request.MaxAge && at.Before(p.request.CreatedAt) || age < -auth.ClockTolerance)
}

// askOrLeave returns the question of a consent, or Leave if the person need not be asked.
func (s *Service) askOrLeave(ctx context.Context, p *pending) (Next, error) {
	again := p.request.Prompts(oauth.PromptConsent)
	if p.client.SkipConsent && !p.client.ID.IsURL() && !again {
		return Next{Step: Leave}, nil
	}
	host := oauth.RedirectHost(p.request.RedirectURI)
	if !again && !s.config.AlwaysAsk {
		given, err := s.ports.Consents.Find(ctx, p.session.UserID, p.client.ID, host, p.target.URL)
		if err == nil && p.now.Before(given.ExpiresAt) && given.Terms == p.terms() &&
			oauth.HasScopes(given.Scopes, p.scopes) {
			return Next{Step: Leave}, nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return Next{}, err
		}
	}
	return Next{Step: Ask, Consent: &Consent{
		Client: p.client.Name, ClientHost: p.client.ID.Host(), Host: host, Local: p.client.IsLocal(),
		Resource: p.target.URL, Servers: p.target.listed(), Registry: p.target.registry, Scopes: p.scopes,
	}}, nil
}

// terms returns a hash of what a person agrees to besides the scopes: those of the client, and the servers.
func (p *pending) terms() auth.TokenHash {
	of := p.client.Terms()
	text := of[:]
	for _, one := range p.target.listed() {
		text = append(append(text, '\n'), one.Name.String()...)
	}
	return sha256.Sum256(text)
}

// family returns the family of a request, which lives on if its code is used.
func (p *pending) family() oauth.Family {
	return oauth.Family{
		UserID: p.session.UserID, SessionID: p.session.ID, Client: p.client.ID, ClientName: p.client.Name,
		RedirectURI: p.request.RedirectURI, Challenge: p.request.Challenge, Resource: p.target.URL, Scopes: p.scopes,
		Level: p.session.TrustLevel, AuthTime: p.session.Authenticated(),
		CreatedAt: p.now, ExpiresAt: p.now.Add(oauth.CodeTTL),
	}
}

// turnAway ends a request with an error for the client. What concerns a person is recorded.
func (s *Service) turnAway(ctx context.Context, p *pending, refusal no) (Next, error) {
	err := s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Requests.Take(ctx, p.request.ID); err != nil {
			return err
		}
		if p.session.ID == "" || refusal.code == oauth.CodeConsentRequired || refusal.code == oauth.CodeLoginRequired {
			return nil
		}
		f := p.family()
		if f.Resource == "" {
			f.Resource = p.request.Resource
		}
		return s.ports.Trail.RecordChanges(ctx,
			oauth.NewChange(oauth.ActionRefuse, &f, p.target.servers, f.Level, p.visit.From, refusal.why))
	})
	if err != nil {
		return Next{}, err
	}
	return Next{Step: Leave, Client: p.client.Name, URL: s.errorURL(&p.request, refusal.code, refusal.why)}, nil
}

// grant issues a code, and stores the consent if the person has just agreed. Of parallel calls for one
// request, one succeeds.
func (s *Service) grant(ctx context.Context, p *pending, agreed bool) (Next, error) {
	code := secrets.NewSecret[auth.LinkSecret](s.ports.Entropy)
	f := p.family()
	f.ID = secrets.NewUUID[oauth.FamilyID](s.ports.Entropy)
	err := s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Requests.Take(ctx, p.request.ID); err != nil {
			return err
		}
		if err := s.ports.Families.Add(ctx, f); err != nil {
			return err
		}
		if err := s.ports.Secrets.Add(ctx, oauth.Secret{
			Hash: auth.HashSecret(code), Family: f.ID, Code: true, IssuedAt: p.now, ExpiresAt: f.ExpiresAt,
		}); err != nil {
			return err
		}
		if agreed && !s.config.AlwaysAsk {
			if err := s.ports.Consents.Put(ctx, oauth.Consent{
				UserID: f.UserID, Client: f.Client, Host: oauth.RedirectHost(f.RedirectURI), Resource: f.Resource,
				Scopes: f.Scopes, Terms: p.terms(), GivenAt: p.now, ExpiresAt: p.now.Add(oauth.ConsentTTL),
			}); err != nil {
				return err
			}
		}
		return s.ports.Trail.RecordChanges(ctx,
			oauth.NewChange(oauth.ActionAllow, &f, p.target.servers, f.Level, p.visit.From, ""))
	})
	if err != nil {
		return Next{}, err
	}
	return Next{Step: Leave, Client: p.client.Name, URL: oauth.AnswerURL(f.RedirectURI,
		[2]string{"code", string(code)}, [2]string{"state", p.request.State}, [2]string{"iss", s.config.Issuer})}, nil
}
