package federating

import (
	"context"
	"regexp"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Callback is the answer of a provider, as a browser brings it.
type Callback struct {
	Provider           string
	State, Code, Error string
	Issuer             string // the parameter iss; empty if it is absent
	Cookie             Cookie
	Base               string
	From               signin.Origin
	Session            *auth.Session // that the browser has; nil without one
}

// Completed is a sign-in that is complete.
type Completed struct {
	signin.Result

	Return  string  // the page to go on with; empty for the first one
	Cookie  Cookie  // also after an error
	Asks    string  // the state of a Question about an identity; then no session has begun
	Raised  *Raised // a step-up has succeeded, and no session has begun
	Problem company.GroupsProblem
}

// codeRefused is the code, and the reason in the audit log, of an answer of a provider with an error.
const codeRefused fault.Code = "refused_by_provider"

var errorForm = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// Complete completes a sign-in, in this order: the state, the issuer, an error of the provider, the
// exchange of the code, the ID token, and who it is. The error is fault.Invalid for an answer that is
// not one to this browser and for a code that is refused, fault.Unauthenticated for an ID token that
// is refused, fault.Forbidden for a person who may not sign in, and fault.Unavailable. For a step-up it
// is that of stepup.Verify.
func (s *Service) Complete(ctx context.Context, in Callback) (done Completed, err error) {
	one, rest, err := s.take(ctx, in.Cookie, "company state", func(b begun) bool {
		return b.State == in.State && string(b.Provider) == in.Provider && b.Found == nil
	})
	done.Cookie, done.Return = rest, one.Return
	if err != nil {
		return done, err
	}
	client, err := s.find(ctx, in.Provider, in.Base)
	if err != nil {
		return done, err
	}
	claims, refresh, err := s.readAnswer(ctx, client, in, one.State)
	if err != nil {
		s.noteProblem(ctx, client.Provider, err)
	}
	if one.StepUp != "" {
		done.Raised, err = s.stepUp(ctx, one.StepUp, client.Provider, &claims, err)
		return done, err
	}
	if err != nil {
		return done, s.recordRefusal(ctx, in.From, client.Provider, claims, err)
	}
	if one.Link != "" {
		done.Asks, in.Cookie = one.State, rest
		done.Cookie, err = s.ask(ctx, in, one, client.Provider, &claims)
		return done, err
	}
	p := &person{
		service: s, provider: client.Provider, claims: &claims, nonce: s.derived("nonce", one.State), refresh: refresh,
	}
	done.Result, err = s.ports.SignIn.Start(ctx, in.From, p.admit)
	if fault.Is(err, fault.Conflict) { // another sign-in has made or linked the account meanwhile
		done.Result, err = s.ports.SignIn.Start(ctx, in.From, p.admit)
	}
	if err != nil {
		return done, s.recordRefusal(ctx, in.From, client.Provider, claims, err)
	}
	done.Problem = claims.Groups.Problem
	s.noteSuccess(ctx, client.Provider, done.Problem, &claims)
	if p.verdict == company.Link {
		s.ports.Notices.Notify(notices.Event{
			Kind: notices.CompanyLinked, UserID: p.account.ID, At: s.ports.Clock.Now(), Address: in.From.Address,
		})
	}
	return done, nil
}

// readAnswer checks the answer of a provider and returns what it says about the person, and the
// refresh token. With an error, the claims have what is known of the subject.
func (s *Service) readAnswer(
	ctx context.Context, client identity.Client, in Callback, state string,
) (claims company.Claims, refresh string, err error) {
	if err := s.ports.Remote.CheckIssuer(ctx, client, in.Issuer); err != nil {
		return claims, "", err
	}
	switch {
	case errorForm.MatchString(in.Error):
		return claims, "", fault.Newf(fault.Forbidden, "the company's sign-in says: %s", in.Error).WithCode(codeRefused)
	case in.Error != "":
		return claims, "", fault.New(fault.Forbidden, "the company's sign-in has refused").WithCode(codeRefused)
	case in.Code == "":
		return claims, "", fault.New(fault.Invalid, "the answer of the company's sign-in has no code")
	}
	got, err := s.ports.Remote.Exchange(ctx, client, in.Code, s.derived("verifier", state))
	if err != nil {
		return claims, "", err
	}
	claims, err = s.readClaims(ctx, client.Provider, &got, func(c *company.Claims, now time.Time) error {
		return c.CheckToken(client.Provider, s.derived("nonce", state), false, now)
	})
	return claims, got.Refresh, err
}

// readClaims returns what tokens say, completed by the userinfo endpoint.
func (s *Service) readClaims(
	ctx context.Context, p *company.Provider, got *identity.Tokens, check func(*company.Claims, time.Time) error,
) (company.Claims, error) {
	claims, err := p.ReadClaims(got.Payload)
	if err == nil {
		err = check(&claims, s.ports.Clock.Now())
	}
	if err != nil || got.More == nil || !claims.NeedsMore(p) {
		return claims, err
	}
	document, err := got.More(ctx)
	if err != nil && claims.Email != "" && (claims.HasGroups() || !p.NeedsGroups()) {
		return claims, nil // groups that views and rules may name are not worth refusing the person
	}
	if err == nil {
		err = claims.Complete(p, document)
	}
	return claims, err
}

// person is a person whom a provider has signed in.
type person struct {
	service  *Service
	provider *company.Provider
	claims   *company.Claims
	nonce    string
	refresh  string // empty without a refresh token

	verdict company.Verdict
	account auth.Account
}

// admit decides about a sign-in and stores what follows, in the transaction of the context. The error
// is refusedError for a person who may not sign in.
func (p *person) admit(ctx context.Context) (signin.Admitted, error) {
	s, now := p.service, p.service.ports.Clock.Now()
	known, linked, err := p.find(ctx)
	if err != nil {
		return signin.Admitted{}, err
	}
	p.verdict = p.provider.Decide(p.claims, known)
	if p.account = (auth.Account{}); known.Account != nil {
		p.account = *known.Account
	}
	if !p.verdict.Admits() {
		return signin.Admitted{}, refusedError{p.verdict, p.account.ID, p.provider, p.claims.Groups.Problem}
	}
	if p.verdict == company.Create {
		if p.account, err = s.ports.People.AddFromCompany(ctx, p.claims.Email, p.claims.Name); err != nil {
			return signin.Admitted{}, err
		}
	}
	if linked.ID == "" {
		linked, err = s.addIdentity(ctx, p.provider, company.Identity{
			UserID: p.account.ID, Issuer: p.claims.Issuer, Subject: p.claims.Subject, Email: p.claims.Email,
			Membership: p.provider.MembershipOf(p.claims),
		}, nil)
	} else {
		err = s.ports.Identities.Use(ctx, linked.ID, p.claims.Email, p.provider.MembershipOf(p.claims), now)
	}
	if err == nil {
		err = p.activate(ctx)
	}
	if err == nil {
		err = s.replaceGrants(ctx, p.provider, p.account.ID, p.claims.Groups)
	}
	if err != nil {
		return signin.Admitted{}, err
	}
	return p.admitted(linked.ID, now)
}

// find returns what is known about the person: by the identity, else by the e-mail address.
func (p *person) find(ctx context.Context) (known company.Known, linked company.Identity, err error) {
	ports := p.service.ports
	linked, err = ports.Identities.Find(ctx, p.claims.Issuer, p.claims.Subject)
	var account auth.Account
	switch {
	case err == nil:
		known.Linked, known.Account = true, &auth.Account{ID: linked.UserID} // activate reads it and decides
		return known, linked, nil
	case !fault.Is(err, fault.NotFound), p.claims.Email == "":
		return known, company.Identity{}, ignoreNotFound(err)
	}
	account, err = ports.Accounts.ByEmail(ctx, p.claims.Email)
	if err != nil {
		return known, company.Identity{}, ignoreNotFound(err)
	}
	known.Account = &account
	others, err := ports.Identities.Of(ctx, account.ID)
	if err != nil {
		return known, company.Identity{}, err
	}
	for _, other := range others {
		if other.Issuer == p.claims.Issuer && other.Subject == p.claims.Subject { // added since it was looked for
			return company.Known{Linked: true, Account: &auth.Account{ID: other.UserID}}, other, nil
		}
	}
	known.HasOther = hasIssuer(others, p.provider.Issuer)
	known.Operates, err = ports.Grants.MayOperate(ctx, string(account.ID))
	return known, company.Identity{}, err
}

func ignoreNotFound(err error) error {
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// activate makes an invited person active, and locks the row of the account until the transaction
// ends, so that the state cannot change during it.
func (p *person) activate(ctx context.Context) error {
	ports, invited := p.service.ports, false
	err := ports.Accounts.Update(ctx, p.account.ID, func(a *auth.Account) error {
		switch a.State {
		case auth.AccountDisabled:
			return refusedError{company.Disabled, a.ID, p.provider, ""}
		case auth.AccountLocked:
			return refusedError{company.Locked, a.ID, p.provider, ""}
		}
		invited, a.State = a.State == auth.AccountInvited, auth.AccountActive
		p.account = *a
		return nil
	})
	if err != nil || !invited {
		return err
	}
	return ports.Links.RemoveAll(ctx, p.account.ID, auth.LinkInvitation)
}

// admitted returns the person with the sign-in, which is stored with the session that begins.
func (p *person) admitted(of company.IdentityID, now time.Time) (signin.Admitted, error) {
	s := p.service
	l := company.Login{
		ID: secrets.NewUUID[company.LoginID](s.ports.Entropy), IdentityID: of, Provider: p.provider.Name, SID: p.claims.SID,
		AnsweredAt: now,
	}
	if p.refresh != "" && p.provider.AsksForRefresh() {
		sealed, err := s.sealRefresh(l.ID, p.provider.Issuer, p.nonce, p.refresh)
		if err != nil {
			return signin.Admitted{}, err
		}
		l.Refresh, l.RecheckAt = sealed, now.Add(p.provider.Recheck)
	}
	a := signin.Admitted{
		Account: p.account, Login: l, Until: now.Add(p.provider.MaxSession),
		Proof: company.Proof{Provider: p.provider.Name, Subject: p.claims.Subject},
	}
	if p.claims.HasSecondFactor(p.provider, now) {
		a.Factor = auth.FactorCompany
	}
	return a, nil
}

// replaceGrants gives a person the grants of the groups, and takes the other ones of the provider.
func (s *Service) replaceGrants(ctx context.Context, p *company.Provider, user auth.UserID, g company.Groups) error {
	wanted := each.Map(p.GrantsOf(g.Names), func(g company.GroupGrant) authority.GrantText {
		return authority.GrantText{Action: g.Action, Resource: g.Resource}
	})
	done, err := s.ports.Grants.ReplaceGrants(ctx, string(user), p.Name.Origin(), wanted)
	if err != nil || len(done.Added)+len(done.Removed) == 0 && g.Problem == "" && !done.KeptOperator {
		return err
	}
	return s.ports.Trail.RecordChanges(ctx, newGroupsChange(p.Name, user, done, g.Problem))
}
