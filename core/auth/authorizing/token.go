package authorizing

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// The types of grants.
const (
	grantCode      = "authorization_code"
	grantRefresh   = "refresh_token"
	grantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

func errGrant() error {
	return oauth.Refuse(oauth.CodeInvalidGrant, "the code, token or assertion is not good, or not any more")
}

// Token answers a token request: a code, a refresh token or an assertion. The errors have the codes of
// package oauth; fault.Exhausted if there are too many requests of the client.
func (s *Service) Token(ctx context.Context, r TokenRequest) (Tokens, error) {
	client, err := s.authenticate(ctx, &r)
	if err != nil {
		return Tokens{}, err
	}
	x := exchange{form: r.Form, client: client, from: r.From, now: s.ports.Clock.Now()}
	switch r.Form.Get("grant_type") {
	case grantCode:
		return s.exchangeCode(ctx, &x)
	case grantRefresh:
		return s.exchangeRefresh(ctx, &x)
	case grantAssertion:
		return s.exchangeAssertion(ctx, &x)
	}
	if !r.Form.Has("grant_type") {
		return Tokens{}, oauth.Refuse(oauth.CodeInvalidRequest, "grant_type is required")
	}
	return Tokens{}, oauth.Refuse(oauth.CodeUnsupportedGrantType, "grant_type must be %s or %s", grantCode, grantRefresh)
}

// load reads what the code or refresh token of a parameter belongs to. One of another client, of the other
// kind, or of a grant that has ended is like one that is unknown.
func (s *Service) load(ctx context.Context, x *exchange, parameter string) error {
	x.secret = auth.RefreshSecret(x.form.Get(parameter))
	if x.secret == "" {
		return oauth.Refuse(oauth.CodeInvalidRequest, "%s is required", parameter)
	}
	stored, err := s.ports.Secrets.Find(ctx, auth.HashSecret(x.secret))
	if err == nil {
		x.family, err = s.ports.Families.Get(ctx, stored.Family)
	}
	if fault.Is(err, fault.NotFound) ||
		err == nil && (stored.Code != (parameter == "code") || x.family.Client != x.client.ID || !x.family.Active(x.now)) {
		return errGrant()
	}
	x.stored = stored
	return err
}

// checkResource checks that the resource of the request, if there is one, is that of the family.
func (x *exchange) checkResource(required bool) error {
	wanted, err := oauth.ResourceOf(x.form, required)
	if err != nil || wanted == "" {
		return err
	}
	if !isSameResource(wanted, x.family.Resource) {
		return oauth.Refuse(oauth.CodeInvalidTarget, "the grant is for another resource")
	}
	return nil
}

// exchangeCode answers a request with a code (contract T-14).
func (s *Service) exchangeCode(ctx context.Context, x *exchange) (Tokens, error) {
	if err := s.load(ctx, x, "code"); err != nil {
		return Tokens{}, err
	}
	if x.form.Get(oauth.ParameterRedirect) != x.family.RedirectURI ||
		!oauth.ProvesChallenge(x.form.Get("code_verifier"), x.family.Challenge) {
		return Tokens{}, errGrant()
	}
	if err := x.checkResource(true); err != nil {
		return Tokens{}, err
	}
	return s.exchange(ctx, x)
}

// exchangeRefresh answers a request with a refresh token (contract T-17). It may be for fewer scopes.
func (s *Service) exchangeRefresh(ctx context.Context, x *exchange) (Tokens, error) {
	if err := s.load(ctx, x, "refresh_token"); err != nil {
		return Tokens{}, err
	}
	if err := x.checkResource(false); err != nil {
		return Tokens{}, err
	}
	wanted, err := oauth.ParseScopes(x.form.Get("scope"))
	if err == nil && !oauth.HasScopes(x.family.Scopes, wanted) {
		err = oauth.Refuse(oauth.CodeInvalidScope, "the grant has not all of the scopes")
	}
	if err != nil {
		return Tokens{}, err
	}
	x.wanted = wanted
	return s.exchange(ctx, x)
}

// exchange is the state of one request for tokens.
type exchange struct {
	form   url.Values
	client oauth.Client
	from   netip.Addr
	now    time.Time

	secret auth.RefreshSecret // a code, too
	stored oauth.Secret
	family oauth.Family
	wanted []string // scopes; empty for all
	answer answer
	no     error // why no token may be issued; nil if one may
}

// outcome is the end of an exchange. A replay is no error, because what it ends must be stored.
type outcome struct {
	tokens   Tokens
	replayed bool
}

// exchange decides whether the client may have tokens of the family now, and exchanges the secret for them.
// A secret that was used before is a replay, whatever is decided.
func (s *Service) exchange(ctx context.Context, x *exchange) (Tokens, error) {
	x.answer, x.no = s.decide(ctx, &x.family, &x.client, x.from)
	if x.no == nil && !x.stored.Code && !x.answer.target.Refresh {
		x.no = no{oauth.CodeInvalidGrant, "the resource has no refresh tokens any more"}
	}
	if x.stored.SpentAt.IsZero() {
		if x.stored.Code && !auth.Alive(x.stored.ExpiresAt, x.now, oauth.CodeTTL) {
			return Tokens{}, errGrant()
		}
		if x.no != nil {
			return Tokens{}, s.refuse(ctx, x)
		}
	}
	done, err := transaction.Do(ctx, s.ports.Transactions, func(ctx context.Context) (outcome, error) {
		err := s.ports.Secrets.Spend(ctx, x.stored.Hash, x.now)
		switch {
		case fault.Is(err, fault.Conflict):
			return s.useAgain(ctx, x)
		case fault.Is(err, fault.NotFound):
			return outcome{}, errGrant()
		case err != nil:
			return outcome{}, err
		}
		tokens, err := s.rotate(ctx, x)
		return outcome{tokens: tokens}, err
	})
	if err == nil && done.replayed {
		err = errGrant()
	}
	var refusal no
	if errors.As(err, &refusal) {
		err = s.refuse(ctx, x)
	}
	return done.tokens, err
}

// rotate issues the tokens of a secret that was spent just now.
func (s *Service) rotate(ctx context.Context, x *exchange) (Tokens, error) {
	err := s.ports.Families.Update(ctx, x.family.ID, func(f *oauth.Family) error {
		if !f.Active(x.now) {
			return errGrant()
		}
		if x.stored.Code {
			f.ExpiresAt = f.CreatedAt.Add(oauth.FamilyTTL)
		}
		f.UsedAt, f.Scopes = x.now, x.answer.scopes
		x.family.ExpiresAt = f.ExpiresAt
		return nil
	})
	if err == nil && !x.stored.Code && x.family.SessionID != "" {
		err = s.renewSession(ctx, x)
	}
	if err != nil {
		return Tokens{}, err
	}
	var successor auth.RefreshSecret
	if x.answer.target.Refresh {
		successor = s.successorOf(x.secret)
		if err := s.ports.Secrets.Add(ctx, oauth.Secret{
			Hash: auth.HashSecret(successor), Family: x.family.ID, IssuedAt: x.now, ExpiresAt: x.family.ExpiresAt,
		}); err != nil {
			return Tokens{}, err
		}
	}
	return s.issue(ctx, x, successor)
}

// renewSession extends the session of the family, since a refresh is activity of it.
func (s *Service) renewSession(ctx context.Context, x *exchange) error {
	return s.ports.Sessions.Update(ctx, x.family.SessionID, func(stored *auth.Session) error {
		if !stored.Active(x.now) {
			return errGrant()
		}
		stored.Renew(x.now, s.config.SessionTTL, s.config.SessionMaxAge)
		x.answer.standing.until = stored.ExpiresAt
		return nil
	})
}

// successorOf returns the refresh token that replaces a secret. With a grace period it is derived from
// that, so that a repeated request gets the same one.
func (s *Service) successorOf(secret auth.RefreshSecret) auth.RefreshSecret {
	if s.config.ReuseGrace == 0 {
		return secrets.NewSecret[auth.RefreshSecret](s.ports.Entropy)
	}
	return auth.NewSecret[auth.RefreshSecret](s.successorKey.Sum(string(secret)))
}

// useAgain handles a secret that is spent: a refresh token within the grace period whose successor was not
// used yet gets the same one again. Every other use is a replay, which ends the family.
func (s *Service) useAgain(ctx context.Context, x *exchange) (outcome, error) {
	if s.config.ReuseGrace > 0 && !x.stored.Code {
		successor := s.successorOf(x.secret)
		next, err := s.ports.Secrets.Find(ctx, auth.HashSecret(successor))
		switch {
		case err == nil && next.SpentAt.IsZero() && next.Family == x.family.ID &&
			x.now.Sub(next.IssuedAt) <= s.config.ReuseGrace:
			if x.no != nil {
				return outcome{}, x.no
			}
			tokens, err := s.issue(ctx, x, successor)
			return outcome{tokens: tokens}, err
		case err != nil && !fault.Is(err, fault.NotFound):
			return outcome{}, err
		}
	}
	ended := false
	err := s.ports.Families.Update(ctx, x.family.ID, func(f *oauth.Family) error {
		if ended = f.Active(x.now); ended {
			f.EndedAt, f.EndReason = x.now, oauth.EndReplay
		}
		return nil
	})
	if err == nil && ended && !errors.Is(x.no, errSessionEnded) { // otherwise it was worth nothing
		err = s.ports.Trail.RecordChanges(ctx,
			oauth.NewReplay(&x.family, x.answer.target.servers, x.answer.standing.level, x.stored.Code, x.from))
	}
	return outcome{replayed: true}, err
}

// issue signs an access token of the family, and records it.
func (s *Service) issue(ctx context.Context, x *exchange, refresh auth.RefreshSecret) (Tokens, error) {
	f, a := &x.family, &x.answer
	action := oauth.ActionRefresh
	switch {
	case x.stored.Code:
		action = oauth.ActionToken
	case f.SessionID == "":
		action = oauth.ActionAssertion
	}
	scopes := a.scopes
	if len(x.wanted) > 0 {
		scopes = oauth.CommonScopes(a.scopes, x.wanted)
	}
	expires := x.now.Add(a.target.TokenTTL)
	for _, end := range []time.Time{f.ExpiresAt, a.standing.until} {
		if !end.IsZero() && end.Before(expires) {
			expires = end
		}
	}
	token, err := s.ports.Signer.Sign(ctx, secrets.NewGrantClaims(s.ports.Entropy, f, oauth.Claims{
		Family: f.ID, Client: f.Client, Resource: a.target.URL, Scopes: scopes, Level: a.standing.level,
		AuthTime: a.standing.authTime,
	}, x.now, expires.Sub(x.now)))
	if err != nil {
		return Tokens{}, err
	}
	recorded := *f
	recorded.Scopes = scopes
	err = s.ports.Trail.RecordChanges(ctx,
		oauth.NewChange(action, &recorded, a.target.servers, a.standing.level, x.from, ""))
	return Tokens{Access: token, Refresh: refresh, ExpiresIn: expires.Sub(x.now), Scopes: scopes}, err
}

// refuseEvery is how often a refusal for one reason is recorded.
const refuseEvery = time.Minute

// refuse records why no token was issued, once in a while, and returns the error for the client. It
// returns errors other than no as they are.
func (s *Service) refuse(ctx context.Context, x *exchange) error {
	var refusal no
	if !errors.As(x.no, &refusal) {
		return x.no
	}
	f := &x.family
	key := "oauth refusal " + string(f.ID) + " " + string(f.Client) + " " + string(f.UserID) + " " + refusal.why
	first, err := s.ports.Used.Claim(ctx, key, refuseEvery)
	if err == nil && first {
		err = s.ports.Trail.RecordChanges(ctx, oauth.NewChange(
			oauth.ActionRefuse, f, x.answer.target.servers, x.answer.standing.level, x.from, refusal.why))
	}
	switch {
	case err != nil && !fault.Is(err, fault.Unavailable):
		return err
	case refusal == errNotAdmitted && (x.stored.Code || f.SessionID == ""):
		return oauth.Refuse(refusal.code, "%s", refusal.why)
	}
	return errGrant()
}
