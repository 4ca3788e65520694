package authorizing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// exchangeAssertion answers a request with an ID-JAG of a provider (contract T-18).
func (s *Service) exchangeAssertion(ctx context.Context, x *exchange) (Tokens, error) {
	if x.client.Method == oauth.MethodNone {
		return Tokens{}, oauth.Refuse(oauth.CodeUnauthorizedClient, "a client without a key or a secret has no assertions")
	}
	provider, claims, granted, err := s.readAssertion(ctx, x)
	if err != nil {
		return Tokens{}, err
	}
	x.family = oauth.Family{
		Client: x.client.ID, ClientName: x.client.Name, Resource: granted.Resource, Level: auth.Unverified,
		AuthTime: claims.AuthTime(), Provider: string(provider.Name), Subject: claims.Subject,
		CreatedAt: x.now, UsedAt: x.now, ExpiresAt: x.now.Add(oauth.FamilyTTL),
	}
	if claims.HasSecondFactor(provider, x.now) {
		x.family.Level = auth.LimitedTrust
	}
	if claims.NamesGroups() {
		x.family.Groups = each.Map(provider.MembershipOf(claims).Groups, provider.Name.Group)
	}
	x.family.UserID, err = s.admitAsserted(ctx, x, provider, claims)
	var refusal no
	if errors.As(err, &refusal) {
		x.no = refusal
		return Tokens{}, s.refuse(ctx, x)
	}
	if f, ok := fault.As(err); ok && f.Kind == fault.Forbidden {
		x.no = no{oauth.CodeInvalidGrant, f.Message}
		return Tokens{}, s.refuse(ctx, x)
	}
	if err != nil {
		return Tokens{}, err
	}
	return s.issueAsserted(ctx, x, &granted)
}

// admitAsserted returns the person of an assertion, who is made only for a resource that the client may have. The
// error is no if it may not.
func (s *Service) admitAsserted(
	ctx context.Context, x *exchange, p *company.Provider, c *company.Claims,
) (auth.UserID, error) {
	known, err := s.ports.Identities.Find(ctx, p.Issuer, c.Subject)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", err
	}
	if x.answer.target, err = s.findTarget(ctx, x.family.Resource, &x.client); err != nil {
		return known.UserID, err
	}
	return s.ports.Admit(ctx, p, c)
}

// readAssertion returns what a verified assertion says, with its provider.
func (s *Service) readAssertion( //nolint:revive // what one assertion says
	ctx context.Context, x *exchange,
) (p *company.Provider, c *company.Claims, granted oauth.IDJAG, err error) {
	all, err := s.asserting(ctx)
	token := x.form.Get("assertion")
	switch {
	case err != nil:
		return nil, nil, granted, err
	case len(all) == 0:
		return nil, nil, granted, oauth.Refuse(oauth.CodeUnsupportedGrantType, "no provider makes assertions for this service")
	case token == "":
		return nil, nil, granted, oauth.Refuse(oauth.CodeInvalidRequest, "assertion is required")
	}
	payload, err := s.ports.Assertions.ReadAssertion(token)
	if err != nil {
		return nil, nil, granted, refusedAssertion(err)
	}
	var claims company.Claims
	for i := range all {
		if claims, err = all[i].ReadClaims(payload); err == nil && claims.Issuer == all[i].Issuer {
			p = &all[i]
			break
		}
	}
	if p == nil {
		return nil, nil, granted, oauth.Refuse(oauth.CodeInvalidGrant, "the assertion is of another issuer")
	}
	if granted, err = oauth.CheckIDJAG(payload, x.client.ID, s.config.Issuer, x.now); err != nil {
		return nil, nil, granted, err
	}
	if granted.Resource, err = x.assertedResource(granted.Resource); err != nil {
		return nil, nil, granted, err
	}
	return p, &claims, granted, refusedAssertion(s.ports.Assertions.VerifyAssertion(ctx, p, token))
}

// asserting returns the providers that make assertions for the service.
func (s *Service) asserting(ctx context.Context) ([]company.Provider, error) {
	all, err := s.ports.Providers.List(ctx)
	return slices.DeleteFunc(all, func(p company.Provider) bool { return !p.IDJAG }), err
}

// refusedAssertion returns the error of an assertion as the client gets it.
func refusedAssertion(err error) error {
	if f, ok := fault.As(err); ok && f.Kind == fault.Unauthenticated {
		return oauth.Refuse(oauth.CodeInvalidGrant, "%s", f.Message)
	}
	return err
}

// assertedResource returns the resource of a request with an assertion, which may say so, too.
func (x *exchange) assertedResource(asserted string) (string, error) {
	wanted, err := oauth.ResourceOf(x.form, asserted == "")
	switch {
	case err != nil || asserted == "":
		return wanted, err
	case wanted == "":
		return asserted, nil
	}
	if !isSameResource(asserted, wanted) {
		return "", oauth.Refuse(oauth.CodeInvalidTarget, "resource and the assertion are about different resources")
	}
	return asserted, nil
}

// issueAsserted decides about an assertion of a person, and issues a token for it, once.
func (s *Service) issueAsserted(ctx context.Context, x *exchange, granted *oauth.IDJAG) (Tokens, error) {
	wanted, err := oauth.ParseScopes(x.form.Get("scope"))
	if err != nil {
		return Tokens{}, err
	}
	if x.answer, x.no = s.decide(ctx, &x.family, &x.client, x.from); x.no != nil {
		return Tokens{}, s.refuse(ctx, x)
	}
	scopes, err := oauth.NarrowScopes(wanted, x.answer.target.Scopes)
	if err == nil && granted.Limited {
		scopes = oauth.CommonScopes(scopes, granted.Scopes)
		if len(scopes) == 0 && len(wanted)+len(granted.Scopes) > 0 {
			err = oauth.Refuse(oauth.CodeInvalidScope, "the assertion is for no scope of those that were requested")
		}
	}
	if err != nil {
		return Tokens{}, err
	}
	f := &x.family
	f.ID, f.Resource, f.Scopes = secrets.NewUUID[oauth.FamilyID](s.ports.Entropy), x.answer.target.URL, scopes
	f.ExpiresAt, x.answer.scopes = x.now.Add(x.answer.target.TokenTTL), scopes
	key := "id-jag " + f.Provider + " " + granted.ID
	if !s.config.ReuseByClient {
		first, err := s.ports.Used.Claim(ctx, key, max(granted.Until.Sub(x.now), time.Second))
		if err == nil && !first {
			err = oauth.Refuse(oauth.CodeInvalidGrant, "the assertion was used before")
		}
		if err != nil {
			return Tokens{}, err
		}
	}
	tokens, err := transaction.Do(ctx, s.ports.Transactions, func(ctx context.Context) (Tokens, error) {
		if err := s.ports.Families.Add(ctx, *f); err != nil {
			return Tokens{}, err
		}
		return s.issue(ctx, x, "")
	})
	if err != nil && !s.config.ReuseByClient {
		_ = s.ports.Used.Release(context.WithoutCancel(ctx), key) // else the client cannot repeat it
	}
	return tokens, err
}
