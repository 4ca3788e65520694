package federating

import (
	"context"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/identity"
)

const (
	recheckEvery = time.Second      // between two searches for sessions to check
	recheckBatch = 16               // sessions that are checked at once
	retryAfter   = 30 * time.Second // after a check without an answer
)

// codeLeft is the code of the refusal of a refresh token: the person may not sign in any more.
const codeLeft fault.Code = "invalid_grant"

// Run checks sessions again at their providers until the context ends.
func (s *Service) Run(ctx context.Context) {
	for {
		s.RecheckAll(ctx)
		if !s.ports.Waiter.Wait(ctx, recheckEvery) {
			return
		}
	}
}

// RecheckAll checks the sessions whose time has come. Of several instances, one checks a session. An
// error leaves a session to the next check; without an answer it ends at its time.
func (s *Service) RecheckAll(ctx context.Context) {
	now := s.ports.Clock.Now()
	due, err := s.ports.Logins.Find(ctx, authstore.LoginQuery{At: now, Due: now, Limit: recheckBatch})
	if err != nil {
		return
	}
	var running sync.WaitGroup
	for _, l := range due {
		running.Go(func() { _ = s.recheck(ctx, l) }) // see above
	}
	running.Wait()
}

// recheck checks a session again.
func (s *Service) recheck(ctx context.Context, l company.Login) error {
	claimed := l
	claimed.RecheckAt = s.ports.Clock.Now().Add(retryAfter).UTC().Truncate(time.Microsecond)
	if err := s.ports.Logins.Renew(ctx, claimed, l.RecheckAt); err != nil {
		return err
	}
	client, err := s.find(ctx, string(l.Provider), "")
	if err != nil {
		return err
	}
	claims, refresh, err := s.refresh(ctx, client, &l)
	if f, ok := fault.As(err); ok && f.Code == codeLeft {
		return s.endBy(ctx, authstore.LoginQuery{Provider: l.Provider, Identity: l.IdentityID}, "company_left", "", true)
	}
	if err != nil {
		s.noteProblem(ctx, client.Provider, err)
		return err
	}
	if claims.Subject != "" {
		if done, err := s.applyClaims(ctx, client.Provider, &l, &claims); done || err != nil {
			return err
		}
	}
	s.noteSuccess(ctx, client.Provider, claims.Groups.Problem)
	return s.confirm(ctx, client.Provider, claimed, refresh)
}

// refresh returns what a provider says about the person of a login now, and the next refresh token.
// The claims are zero if it says nothing new.
func (s *Service) refresh(
	ctx context.Context, c identity.Client, l *company.Login,
) (claims company.Claims, next string, err error) {
	secret, err := s.ports.Sealer.Open(l.Refresh, refreshAbout(l.ID))
	if err != nil {
		return claims, "", err
	}
	got, err := s.ports.Remote.Refresh(ctx, c, string(secret))
	if err != nil {
		return claims, "", err
	}
	if got.Refresh == "" {
		got.Refresh = string(secret)
	}
	if got.Payload == nil && got.More != nil {
		if got.Payload, err = got.More(ctx); err != nil {
			return claims, "", err
		}
		claims, err = c.ReadClaims(got.Payload)
		return claims, got.Refresh, err
	}
	if got.Payload != nil {
		claims, err = s.readClaims(ctx, c.Provider, &got, func(token *company.Claims, now time.Time) error {
			return token.CheckToken(c.Provider, "", true, now)
		})
	}
	return claims, got.Refresh, err
}

// applyClaims applies what a provider says about a person to the account and the grants. It reports
// whether the sessions have ended.
func (s *Service) applyClaims(
	ctx context.Context, p *company.Provider, l *company.Login, c *company.Claims,
) (done bool, err error) {
	found, err := s.ports.Identities.Find(ctx, p.Issuer, c.Subject)
	if err != nil {
		return false, err
	}
	if found.ID != l.IdentityID {
		return false, company.Reject("subject", "the provider speaks about another person")
	}
	account, err := s.ports.Accounts.Get(ctx, found.UserID)
	if err != nil {
		return false, err
	}
	if v := p.Decide(c, company.Known{Linked: true, Account: &account}); !v.Admits() {
		return true, s.endBy(ctx, authstore.LoginQuery{Provider: p.Name, Identity: l.IdentityID}, "company_logout", string(v), false)
	}
	return false, s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		return s.replaceGrants(ctx, p, account.ID, c.Groups)
	})
}

// confirm stores that a provider has confirmed the person of a login, whose session goes on.
func (s *Service) confirm(ctx context.Context, p *company.Provider, claimed company.Login, refresh string) error {
	now := s.ports.Clock.Now()
	sealed, err := s.ports.Sealer.Seal([]byte(refresh), refreshAbout(claimed.ID))
	if err != nil {
		return err
	}
	next := claimed
	next.Refresh, next.AnsweredAt, next.RecheckAt = sealed, now, now.Add(p.Recheck)
	err = s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Logins.Renew(ctx, next, claimed.RecheckAt); err != nil {
			return err
		}
		return s.ports.Sessions.Update(ctx, claimed.SessionID, func(session *auth.Session) error {
			capped := session.ExpiresAt.Equal(session.MaxExpiresAt)
			session.MaxExpiresAt = earlier(now.Add(p.MaxSession), session.CreatedAt.Add(s.config.SessionMaxAge))
			if capped {
				session.ExpiresAt = earlier(session.MaxExpiresAt, now.Add(s.config.SessionTTL))
			}
			return nil
		})
	})
	if err == nil {
		s.ports.Cache.Drop(ctx, claimed.SessionID)
	}
	return err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// refreshAbout returns what the sealed refresh token of a login is about.
func refreshAbout(id company.LoginID) string { return "company refresh " + string(id) }
