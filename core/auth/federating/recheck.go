package federating

import (
	"context"
	"errors"
	"slices"
	"strings"
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

// Run checks sessions again at their providers, and announces admitted passwords, until the context
// ends and the checks that run have ended.
func (s *Service) Run(ctx context.Context) {
	c := &checks{service: s}
	defer c.running.Wait()
	var operators []string // who could operate in the round before
	reseal := s.ports.Clock.Now().Add(resealAfter)
	for {
		c.begin(ctx)
		if now := s.ports.Clock.Now(); now.After(reseal) && s.resealAll(ctx) == nil {
			reseal = now.AddDate(1, 0, 0)
		}
		s.announceAdmitted(ctx)
		operators = s.announceOperators(ctx, operators)
		if !s.ports.Waiter.Wait(ctx, recheckEvery) {
			return
		}
	}
}

// checks are the checks of sessions that run: one batch for each provider, so that a provider that does
// not answer delays no other one.
type checks struct {
	service *Service
	running sync.WaitGroup

	mu   sync.Mutex
	busy []company.Name
}

// begin begins to check the sessions whose time has come, at providers that are not busy. Of several
// instances, one checks a session. An error leaves a session to the next check; without an answer it
// ends at its time. A check that runs is not interrupted, because the provider may have replaced the
// refresh token already.
func (c *checks) begin(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, now := context.WithoutCancel(ctx), c.service.ports.Clock.Now()
	due, err := c.service.ports.Logins.Find(ctx, authstore.LoginQuery{
		At: now, Due: now, Without: c.busy, Limit: recheckBatch,
	})
	if err != nil {
		return
	}
	batches := map[company.Name][]company.Login{}
	for _, l := range due {
		batches[l.Provider] = append(batches[l.Provider], l)
	}
	for name, batch := range batches {
		c.busy = append(c.busy, name)
		c.running.Go(func() {
			c.service.recheckAll(ctx, batch)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.busy = slices.DeleteFunc(slices.Clone(c.busy), func(n company.Name) bool { return n == name })
		})
	}
}

func (s *Service) recheckAll(ctx context.Context, batch []company.Login) {
	var running sync.WaitGroup
	for _, l := range batch {
		running.Go(func() { _ = s.recheck(ctx, l) }) // see checks.begin
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
	claims, err := s.refresh(ctx, client, &claimed)
	if f, ok := fault.As(err); ok && f.Code == codeLeft {
		if err := s.ports.Identities.Confirm(ctx, l.IdentityID, time.Time{}, nil); err != nil {
			return err
		}
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
	s.noteSuccess(ctx, client.Provider, claims.Groups.Problem, nil)
	return s.confirm(ctx, client.Provider, claimed)
}

// refresh returns what a provider says about the person of a login now. The claims are zero if it
// says nothing new. A refresh token that replaces the one of the login is stored at once, also with an
// error, since the provider may take the use of the old one for theft (RFC 9700, section 4.14.2).
func (s *Service) refresh(ctx context.Context, c identity.Client, l *company.Login) (claims company.Claims, err error) {
	sealed, old, err := openSealed(s.ports.Sealer, l.Refresh, refreshSeal(l.ID, c.Issuer))
	if err != nil {
		return claims, err
	}
	nonce, token, _ := strings.Cut(string(sealed), " ")
	got, failure := s.ports.Remote.Refresh(ctx, c, token)
	if got.Refresh == "" && old {
		got.Refresh = token
	}
	if got.Refresh != "" && (got.Refresh != token || old) {
		if l.Refresh, err = s.sealRefresh(l.ID, c.Issuer, nonce, got.Refresh); err == nil {
			err = s.ports.Logins.Renew(ctx, *l, l.RecheckAt)
		}
	}
	if failure != nil || err != nil {
		return claims, errors.Join(failure, err)
	}
	if got.Payload == nil && got.More != nil {
		if got.Payload, err = got.More(ctx); err != nil {
			return claims, err
		}
		claims, err = c.ReadClaims(got.Payload)
		claims.Issuer = "" // see applyClaims
		return claims, err
	}
	if got.Payload != nil {
		claims, err = s.readClaims(ctx, c.Provider, &got, func(token *company.Claims, now time.Time) error {
			return token.CheckToken(c.Provider, nonce, true, now)
		})
	}
	return claims, err
}

// sealRefresh returns a refresh token with the nonce of its sign-in, which the ID tokens of a refresh
// may have (OpenID Connect Core 1.0, section 12.2), as a login stores it.
func (s *Service) sealRefresh(of company.LoginID, issuer, nonce, token string) (auth.SealedSecret, error) {
	return s.ports.Sealer.Seal([]byte(nonce+" "+token), refreshSeal(of, issuer).about)
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
	if c.Issuer == "" { // it is a document of the userinfo endpoint
		c.KeepGroups(p, found.Membership)
	}
	account, err := s.ports.Accounts.Get(ctx, found.UserID)
	if err != nil {
		return false, err
	}
	if v := p.Decide(c, company.Known{Linked: true, Account: &account}); !v.Admits() {
		if err := s.ports.Identities.Confirm(ctx, found.ID, time.Time{}, nil); err != nil {
			return true, err
		}
		return true, s.endBy(ctx, authstore.LoginQuery{Provider: p.Name, Identity: l.IdentityID}, "company_logout", string(v), false)
	}
	return false, s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		// The lock of the account lets the checks of two sessions of a person follow each other.
		if err := s.ports.Accounts.Update(ctx, account.ID, func(*auth.Account) error { return nil }); err != nil {
			return err
		}
		groups := p.MembershipOf(c)
		if err := s.ports.Identities.Confirm(ctx, found.ID, s.ports.Clock.Now(), &groups); err != nil {
			return err
		}
		return s.replaceGrants(ctx, p, account.ID, c.Groups)
	})
}

// confirm stores that a provider has confirmed the person of a login, whose session goes on.
func (s *Service) confirm(ctx context.Context, p *company.Provider, claimed company.Login) error {
	now, next := s.ports.Clock.Now(), claimed
	next.AnsweredAt, next.RecheckAt = now, now.Add(p.Recheck)
	err := s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Logins.Renew(ctx, next, claimed.RecheckAt); err != nil {
			return err
		}
		if err := s.ports.Identities.Confirm(ctx, claimed.IdentityID, now, nil); err != nil {
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
