package authorizing

import (
	"context"
	"errors"
	"net/netip"
	"net/url"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// Begin keeps an authorization request. It returns a *Redirect for one that is refused at the redirect URI
// of its client. Other errors are shown to the person: fault.Invalid for an unknown client or a wrong
// redirect URI, fault.Exhausted if the document of the client was read too often.
func (s *Service) Begin(ctx context.Context, query url.Values, from netip.Addr) (Begun, error) {
	if err := s.count(ctx, throttle.OAuthAuthorize, "", from); err != nil {
		return Begun{}, err
	}
	if len(query[oauth.ParameterClient]) != 1 || len(query[oauth.ParameterRedirect]) != 1 {
		return Begun{}, oauth.Refuse(oauth.CodeInvalidRequest, "client_id and redirect_uri must be there once")
	}
	redirect := query.Get(oauth.ParameterRedirect)
	client, err := s.findSender(ctx, oauth.ClientID(query.Get(oauth.ParameterClient)), redirect, from)
	if err != nil {
		return Begun{}, err
	}
	request, err := oauth.ReadRequest(query)
	request.Client, request.RedirectURI = client.ID, redirect
	if err == nil {
		err = s.checkTarget(ctx, &request, &client)
	}
	if err != nil {
		return Begun{}, s.redirectError(&request, err)
	}
	begun := Begun{
		ID:      secrets.NewSecret[auth.LinkSecret](s.ports.Entropy),
		Browser: secrets.NewSecret[auth.LinkSecret](s.ports.Entropy),
	}
	now := s.ports.Clock.Now()
	request.ID, request.Browser = auth.HashSecret(begun.ID), auth.HashSecret(begun.Browser)
	request.CreatedAt, request.ExpiresAt = now, now.Add(oauth.RequestTTL)
	if err := s.ports.Requests.Add(ctx, request); err != nil {
		return Begun{}, err
	}
	return begun, nil
}

// findSender returns the client of an authorization request, to which people may be sent back. The errors
// are those of Begin.
func (s *Service) findSender(
	ctx context.Context, id oauth.ClientID, redirect string, from netip.Addr,
) (oauth.Client, error) {
	client, err := s.findClient(ctx, id, from)
	switch {
	case fault.Is(err, fault.NotFound):
		return client, oauth.Refuse(oauth.CodeInvalidRequest, "this application is not known here: ask an operator of this service")
	case fault.Is(err, fault.Invalid):
		return client, fault.Wrap(fault.Invalid, "what this application publishes about itself cannot be used", err).
			WithCode(oauth.CodeInvalidRequest)
	case err == nil && !client.Redirects(redirect):
		err = oauth.Refuse(oauth.CodeInvalidRequest, "this application has not registered the address to which it wants to send you back")
	}
	return client, err
}

// checkTarget checks that the client may ask for the resource of a request, and narrows its scopes.
func (s *Service) checkTarget(ctx context.Context, r *oauth.Request, c *oauth.Client) error {
	t, err := s.findTarget(ctx, r.Resource, c)
	if err == nil {
		r.Scopes, err = oauth.NarrowScopes(r.Scopes, t.Scopes)
	}
	return err
}

// redirectError returns the *Redirect for an error that the client gets, and others as they are.
func (s *Service) redirectError(r *oauth.Request, err error) error {
	var refusal no
	f, ok := fault.As(err)
	switch {
	case errors.As(err, &refusal):
		return &Redirect{s.errorURL(r, refusal.code, refusal.why)}
	case ok && f.Kind == fault.Invalid:
		return &Redirect{s.errorURL(r, f.Code, f.Message)}
	}
	return err
}

// errorURL returns the redirect URI of a request with an error.
func (s *Service) errorURL(r *oauth.Request, code fault.Code, description string) string {
	return oauth.AnswerURL(r.RedirectURI, [2]string{"error", string(code)},
		[2]string{"error_description", description}, [2]string{"state", r.State}, [2]string{"iss", s.config.Issuer})
}
