package federating

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// admittedBatch is how many people are looked at in one round.
const admittedBatch = 100

// announceOperators sends every operator a notice of each person who can operate now and could not in the
// round before, however that came (contract A-92). One instance sends it. What was given while no instance
// ran is not announced.
func (s *Service) announceOperators(ctx context.Context, before []string) []string {
	operators, err := s.ports.Grants.Operators(ctx)
	if err != nil {
		return before
	}
	now := s.ports.Clock.Now()
	for _, id := range operators {
		if before == nil || slices.Contains(before, id) {
			continue
		}
		first, err := s.ports.Used.Claim(ctx, "operator "+id+now.UTC().Format(" 2006-01-02 15"), time.Hour)
		if err != nil || !first {
			continue
		}
		for _, to := range operators {
			s.ports.Notices.Notify(notices.Event{
				Kind: notices.OperatorAdded, UserID: auth.UserID(to), At: now,
				Pages: []notices.Page{{Name: "People", Path: "/console/operator/people"}},
			})
		}
	}
	return operators
}

// announceAdmitted sends every operator a notice of each person whose password a command has admitted
// (contract A-77). The command runs in a process of its own, without couriers, so one instance of the
// service sends the notice. After an error the next round tries again.
func (s *Service) announceAdmitted(ctx context.Context) {
	now := s.ports.Clock.Now()
	admitted, err := s.ports.Directory.Search(ctx, authstore.DirectoryQuery{AdmittedAt: now, Limit: admittedBatch})
	if err != nil || len(admitted) == 0 {
		return
	}
	operators, err := s.ports.Grants.Operators(ctx)
	if err != nil {
		return
	}
	for _, p := range admitted {
		key := fmt.Sprintf("break-glass %s %d", p.ID, p.AdmittedUntil.UnixMicro())
		first, err := s.ports.Used.Claim(ctx, key, people.MaxBreakGlass+auth.ClockTolerance)
		if err != nil || !first {
			continue
		}
		who := string(p.Email) + ", until " + p.AdmittedUntil.UTC().Format("2 January 2006, 15:04 UTC")
		page := notices.Page{Name: "The person", Path: "/console/operator/people/" + url.PathEscape(string(p.Email))}
		for _, id := range operators {
			s.ports.Notices.Notify(notices.Event{
				Kind: notices.BreakGlassOpened, UserID: auth.UserID(id), At: now, Servers: who, Pages: []notices.Page{page},
			})
		}
	}
}

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
