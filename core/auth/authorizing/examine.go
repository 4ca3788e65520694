package authorizing

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Revoke ends what a token of the client came from (RFC 7009). Unknown tokens are ignored.
func (s *Service) Revoke(ctx context.Context, r TokenRequest) error {
	client, err := s.authenticate(ctx, &r)
	if err != nil {
		return err
	}
	token := r.Form.Get("token")
	if token == "" {
		return oauth.Refuse(oauth.CodeInvalidRequest, "token is required")
	}
	id := oauth.FamilyID("")
	stored, err := s.ports.Secrets.Find(ctx, auth.HashSecret(auth.RefreshSecret(token)))
	switch {
	case err == nil && !stored.Code:
		id = stored.Family
	case err != nil && !fault.Is(err, fault.NotFound):
		return err
	default:
		claims, err := s.ports.Verifier.Verify(ctx, auth.AccessToken(token))
		if err != nil || claims.Granted == nil {
			return ignoreRefusal(err)
		}
		id = claims.Granted.Family
	}
	f, err := s.ports.Families.Get(ctx, id)
	if err != nil || f.Client != client.ID {
		return ignoreRefusal(err)
	}
	return ignoreRefusal(s.end(ctx, &f, r.From, false))
}

// ignoreRefusal returns an error unless it is one of a token that is unknown or not good any more.
func ignoreRefusal(err error) error {
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Unauthenticated) {
		return nil
	}
	return err
}

// end ends a family, and what was agreed with its client, for a request from an address. It returns
// fault.NotFound for one that has ended.
func (s *Service) end(ctx context.Context, f *oauth.Family, from netip.Addr, consents bool) error {
	now := s.ports.Clock.Now()
	t, err := s.findTarget(ctx, f.Resource, nil)
	if refusal := (no{}); err != nil && !errors.As(err, &refusal) {
		return err
	}
	return s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		err := s.ports.Families.Update(ctx, f.ID, func(stored *oauth.Family) error {
			if !stored.Active(now) {
				return auth.NotFound("application")
			}
			stored.EndedAt, stored.EndReason = now, oauth.EndRevoked
			return nil
		})
		if err != nil {
			return err
		}
		if consents {
			if err := s.ports.Consents.Remove(ctx, authorization.FamilyFilter{UserID: f.UserID, Client: f.Client}); err != nil {
				return err
			}
		}
		return s.ports.Trail.RecordChanges(ctx, oauth.NewChange(oauth.ActionRevoke, f, t.servers, f.Level, from, ""))
	})
}

// Introspect examines an access token for a service account. It returns fault.Unauthenticated or
// fault.Forbidden for another caller, or one whose token lacks the scope decide.
func (s *Service) Introspect(ctx context.Context, who authority.Caller, token string) (Introspection, error) {
	holder, err := who.Person()
	if err == nil {
		err = who.RequireScope(scope.Decide)
	}
	if err != nil {
		return Introspection{}, err
	}
	account, isService := holder.Service()
	if _, byToken := who.Token(); !isService || !byToken {
		return Introspection{}, fault.New(fault.Forbidden, "only a service account examines tokens")
	}
	claims, err := s.ports.Verifier.Verify(ctx, auth.AccessToken(token))
	if err != nil || claims.Granted == nil {
		return Introspection{}, ignoreRefusal(err)
	}
	a, err := s.examine(ctx, &claims, account)
	var refusal no
	if errors.As(err, &refusal) || fault.Is(err, fault.NotFound) {
		return Introspection{}, nil
	}
	if err != nil {
		return Introspection{}, err
	}
	found := *claims.Granted
	found.Level, found.AuthTime = a.standing.level, a.standing.authTime
	found.Scopes = oauth.CommonScopes(found.Scopes, a.scopes)
	return Introspection{
		Active: true, Claims: found, Subject: claims.UserID, Session: claims.SessionID, ID: claims.ID,
		IssuedAt: claims.IssuedAt, ExpiresAt: claims.ExpiresAt,
	}, nil
}

// examine decides about the family of a token as a refresh does, for a service account that may examine
// it. The error is no, or fault.NotFound, for a token that is not good for it.
func (s *Service) examine(ctx context.Context, claims *secrets.TokenClaims, account string) (a answer, err error) {
	refused := no{oauth.CodeInvalidGrant, "the token is not one of this account and grant"}
	granted := claims.Granted
	t, err := s.findTarget(ctx, granted.Resource, nil)
	if err != nil {
		return a, err
	}
	if !slices.Contains(t.Introspectors, account) {
		return a, refused
	}
	f, err := s.ports.Families.Get(ctx, granted.Family)
	if err != nil {
		return a, err
	}
	if !f.Active(s.ports.Clock.Now()) || f.Client != granted.Client || f.UserID != claims.UserID ||
		f.SessionID != claims.SessionID || !isSameResource(f.Resource, granted.Resource) {
		return a, refused
	}
	client := oauth.Client{ID: f.Client}
	switch {
	case !f.Client.IsURL():
		client, err = s.ports.Clients.Get(ctx, f.Client)
	case !s.config.Admits(f.Client):
		err = refused
	}
	if err != nil {
		return a, err
	}
	return s.decide(ctx, &f, &client, netip.Addr{})
}

func isSameResource(a, b string) bool {
	first, ok := oauth.CanonicalURL(a)
	second, _ := oauth.CanonicalURL(b)
	return ok && first == second
}
