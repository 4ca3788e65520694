package federating

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ended are the sessions that have ended, by their people.
type ended map[auth.UserID][]auth.SessionID

func (e ended) all() (ids []auth.SessionID) {
	for _, of := range e {
		ids = append(ids, of...)
	}
	return ids
}

// endSessions ends the active sessions of the logins that a query selects, in the transaction of the
// context.
func endSessions(
	ctx context.Context, logins authstore.Logins, sessions authstore.Sessions, q authstore.LoginQuery, why auth.EndReason,
) (ended, error) {
	found, err := logins.Find(ctx, q)
	if err != nil {
		return nil, err
	}
	done := ended{}
	for _, l := range found {
		var user auth.UserID
		err := sessions.Update(ctx, l.SessionID, func(session *auth.Session) error {
			user = session.UserID
			return session.EndFor(user, q.At, why)
		})
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return nil, err
		default:
			done[user] = append(done[user], l.SessionID)
		}
	}
	return done, nil
}

// usedFor is how long the ID of a logout token is remembered: longer than a token is accepted.
const usedFor = 10 * time.Minute

// LogOut ends the sessions that a logout token of a provider names (OpenID Connect Back-Channel
// Logout 1.0): those that began with its sid, else all of the identity. It returns fault.NotFound for
// an unknown provider, fault.Unauthenticated, with the reason as its code, for a token that is
// refused, and nil also if there is no session to end.
func (s *Service) LogOut(ctx context.Context, name, token string) error {
	client, err := s.find(ctx, name, "")
	if err != nil {
		return err
	}
	payload, err := s.ports.Remote.VerifyLogout(ctx, client.Provider, token)
	if err != nil {
		return err
	}
	claims, err := client.ReadClaims(payload)
	if err != nil {
		return err
	}
	id, err := claims.CheckLogout(client.Provider, s.ports.Clock.Now())
	if err != nil {
		return err
	}
	key := "company logout " + client.Issuer + " " + id
	first, err := s.ports.Used.Claim(ctx, key, usedFor)
	if err != nil {
		return err
	}
	if !first {
		return company.Reject("used", "the token was used before")
	}
	if err = s.endNamed(ctx, client.Provider, &claims); err != nil {
		_ = s.ports.Used.Release(context.WithoutCancel(ctx), key) // else the provider cannot repeat it
	}
	return err
}

// endNamed ends the sessions that the claims of a logout token name.
func (s *Service) endNamed(ctx context.Context, p *company.Provider, c *company.Claims) error {
	q := authstore.LoginQuery{Provider: p.Name, SID: c.SID}
	if c.Subject != "" {
		found, err := s.ports.Identities.Find(ctx, p.Issuer, c.Subject)
		if err != nil {
			return ignoreNotFound(err)
		}
		q.Identity = found.ID
		if err := s.endAsserted(ctx, authorization.FamilyFilter{Provider: string(p.Name), Subject: c.Subject}); err != nil {
			return err
		}
	}
	return s.endBy(ctx, q, "company_logout", "", false)
}

// endBy ends sessions, and with tokens also the personal tokens of their people, with an event for
// each person.
func (s *Service) endBy(
	ctx context.Context, q authstore.LoginQuery, action audit.Action, reason string, tokens bool,
) error {
	done, err := transaction.Do(ctx, s.ports.Transactions, func(ctx context.Context) (ended, error) {
		q.At = s.ports.Clock.Now()
		done, err := endSessions(ctx, s.ports.Logins, s.ports.Sessions, q, auth.EndCompany)
		if err != nil {
			return nil, err
		}
		for user, sessions := range done {
			details := audit.Details{"provider": audit.Text(q.Provider), "sessionsInvalidated": audit.Number(len(sessions))}
			details.Set("reason", reason)
			which := authorization.FamilyFilter{UserID: user, Provider: string(q.Provider)}
			if err := s.endAsserted(ctx, which); err != nil {
				return nil, err
			}
			if tokens {
				removed, err := s.removeTokens(ctx, auth.Owner(user))
				if err != nil {
					return nil, err
				}
				details["tokensRemoved"] = audit.Number(removed)
				if err := s.replaceGrants(ctx, &company.Provider{Name: q.Provider}, user, company.Groups{}); err != nil {
					return nil, err
				}
			}
			if err := s.ports.Trail.RecordChanges(ctx, audit.Change{
				Category: audit.AccountChange, Action: action, Subject: audit.Subject(user), Details: details,
			}); err != nil {
				return nil, err
			}
		}
		return done, nil
	})
	if err == nil {
		s.ports.Cache.Drop(ctx, done.all()...)
	}
	return err
}

// endAsserted ends what came of assertions (contract T-18).
func (s *Service) endAsserted(ctx context.Context, which authorization.FamilyFilter) error {
	return endFamilies(ctx, s.ports.Families, which, s.ports.Clock.Now(), auth.EndCompany)
}

// endFamilies ends families of tokens, in a store that is nil if there are no tokens.
func endFamilies(
	ctx context.Context, in authorization.Families, which authorization.FamilyFilter, at time.Time, why auth.EndReason,
) error {
	if in == nil {
		return nil
	}
	_, err := in.End(ctx, which, at, string(why))
	return err
}

// removeTokens removes all tokens of a person, and returns their number.
func (s *Service) removeTokens(ctx context.Context, owner auth.Owner) (n int, err error) {
	all, err := s.ports.Tokens.Of(ctx, owner, "", auth.MaxPage)
	for i := 0; i < len(all) && err == nil; i++ {
		_, err = s.ports.Tokens.Remove(ctx, owner, all[i].ID)
		n++
	}
	return n, err
}
