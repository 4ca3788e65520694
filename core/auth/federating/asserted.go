package federating

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// AdmitAsserted returns the person of the verified claims of an identity assertion, which is no sign-in
// (contract T-18): whose identity is linked, or a new one as I-6 (c) says. An account with the same
// e-mail address is never linked by it. It returns fault.Forbidden, with the verdict as its message, for
// others and for a person who may not sign in.
func (s *Service) AdmitAsserted(ctx context.Context, p *company.Provider, c *company.Claims) (auth.UserID, error) {
	admit := func(ctx context.Context) (auth.UserID, error) { return s.admitAsserted(ctx, p, c) }
	id, err := transaction.Do(ctx, s.ports.Transactions, admit)
	if fault.Is(err, fault.Conflict) { // another assertion has made the account meanwhile
		id, err = transaction.Do(ctx, s.ports.Transactions, admit)
	}
	return id, err
}

func (s *Service) admitAsserted(ctx context.Context, p *company.Provider, c *company.Claims) (auth.UserID, error) {
	one := &person{service: s, provider: p, claims: c}
	known, linked, err := one.find(ctx)
	if err != nil {
		return "", err
	}
	if known.Linked {
		c.KeepGroups(p, linked.Membership)
		account, err := s.ports.Accounts.Get(ctx, linked.UserID)
		if err != nil {
			return "", err
		}
		known.Account = &account
	}
	v := p.Decide(c, known)
	switch {
	case v == company.Link, v == company.SignIn && (known.Account.State != auth.AccountActive || linked.ConfirmedAt.IsZero()):
		v = company.Unknown
		fallthrough
	case !v.Admits():
		return "", fault.New(fault.Forbidden, string(v)).WithCode(auth.CodeAccessDenied)
	case v == company.SignIn:
		return linked.UserID, nil
	}
	if one.account, err = s.ports.People.AddFromCompany(ctx, c.Email, c.Name); err != nil {
		return "", err
	}
	if _, err = s.addIdentity(ctx, p, company.Identity{
		UserID: one.account.ID, Issuer: c.Issuer, Subject: c.Subject, Email: c.Email, Membership: p.MembershipOf(c),
	}, nil); err != nil {
		return "", err
	}
	return one.account.ID, s.replaceGrants(ctx, p, one.account.ID, c.Groups)
}
