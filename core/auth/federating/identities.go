package federating

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Linked is an identity with the provider at which it can be used; empty without one.
type Linked struct {
	company.Identity

	Provider company.Name
	Company  string // the provider's name for people
}

// Identities returns the identities of a person.
func (s *Service) Identities(ctx context.Context, user auth.UserID) ([]Linked, error) {
	return linkedOf(ctx, s.ports.Identities, s.ports.Providers, user)
}

// Identities returns the identities of a person.
func (s *Providers) Identities(ctx context.Context, user auth.UserID) ([]Linked, error) {
	return linkedOf(ctx, s.ports.Identities, s.ports.Providers, user)
}

func linkedOf(
	ctx context.Context, identities authstore.Identities, providers authstore.Providers, user auth.UserID,
) ([]Linked, error) {
	found, err := identities.Of(ctx, user)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	all, err := providers.List(ctx)
	if err != nil {
		return nil, err
	}
	linked := make([]Linked, len(found))
	for i := range found {
		linked[i].Identity = found[i]
		if p := found[i].UsableAt(all); p != nil {
			linked[i].Provider, linked[i].Company = p.Name, p.DisplayName
		}
	}
	return linked, nil
}

func hasIssuer(all []company.Identity, issuer string) bool {
	return slices.ContainsFunc(all, func(i company.Identity) bool { return i.Issuer == issuer })
}

// addIdentity links an identity to an account, with its event, which has the details of about too.
func (s *Service) addIdentity(
	ctx context.Context, p *company.Provider, i company.Identity, about audit.Details,
) (company.Identity, error) {
	now := s.ports.Clock.Now()
	i.ID, i.LinkedAt, i.LastUsedAt, i.ConfirmedAt = secrets.NewUUID[company.IdentityID](s.ports.Entropy), now, now, now
	if err := s.ports.Identities.Add(ctx, i); err != nil {
		return i, err
	}
	return i, s.ports.Trail.RecordChanges(ctx, newLinkChange("link", p.Name, &i, about))
}

// Unlinked is an identity that was unlinked.
type Unlinked struct {
	Since time.Time // it was linked then: tokens that were made since may be of somebody else
	Ended bool      // the session of the caller came from it, and has ended
}

// Unlink removes an identity of the person of a session, with the grants that its providers gave, with an
// event and a notice, and ends the sessions that came from it and the logins that wait for a second
// factor. It returns fault.NotFound, and fault.Conflict if the person has no other way to sign in.
func (s *Service) Unlink(
	ctx context.Context, caller auth.Session, from netip.Addr, id company.IdentityID,
) (done Unlinked, err error) {
	sessions, err := transaction.Do(ctx, s.ports.Transactions, func(ctx context.Context) ([]auth.SessionID, error) {
		removed, providers, err := s.removable(ctx, caller.UserID, id)
		if err != nil {
			return nil, err
		}
		done.Since = removed.LinkedAt
		if err := s.ports.Pending.RemoveAll(ctx, caller.UserID); err != nil {
			return nil, err
		}
		ended, err := endSessions(ctx, s.ports.Logins, s.ports.Sessions, authstore.LoginQuery{
			At: s.ports.Clock.Now(), Identity: id,
		}, auth.EndUnlinked) // before the identity is removed, because its logins go with it
		if err != nil {
			return nil, err
		}
		about := audit.Details{"sessionsInvalidated": audit.Number(len(ended.all()))}
		caller.Describe(about)
		auth.DescribeAddress(about, from)
		return ended.all(), s.remove(ctx, &removed, providers, about)
	})
	if err != nil {
		return Unlinked{}, err
	}
	done.Ended = slices.Contains(sessions, caller.ID)
	s.ports.Cache.Drop(ctx, sessions...)
	s.notify(notices.CompanyUnlinked, &caller, from)
	return done, nil
}

// removable returns an identity of a person, with all providers, and locks the account. The error is that
// of Unlink.
func (s *Service) removable(
	ctx context.Context, user auth.UserID, id company.IdentityID,
) (removed company.Identity, providers []company.Provider, err error) {
	var account auth.Account
	err = s.ports.Accounts.Update(ctx, user, func(a *auth.Account) error { // of parallel calls, one runs
		account = *a
		return nil
	})
	if err != nil {
		return removed, nil, err
	}
	all, err := s.ports.Identities.Of(ctx, user)
	if err != nil {
		return removed, nil, err
	}
	n := slices.IndexFunc(all, func(i company.Identity) bool { return i.ID == id })
	if n < 0 {
		return removed, nil, auth.NotFound("identity")
	}
	removed = all[n]
	keys, err := s.ports.Passkeys.Of(ctx, user)
	if err != nil {
		return removed, nil, err
	}
	providers, err = s.ports.Providers.List(ctx)
	ways := company.Ways{Account: account, Identities: slices.Delete(all, n, n+1), Passkeys: keys}
	if err == nil && !ways.Any(providers, s.config.PasswordsOff) {
		err = fault.New(fault.Conflict, "this is your only way to sign in: set a password, add a passkey or link another one first")
	}
	return removed, providers, err
}

// remove removes an identity with its grants and the event, in the transaction of the context.
func (s *Service) remove(ctx context.Context, i *company.Identity, all []company.Provider, about audit.Details) error {
	if err := s.ports.Identities.Remove(ctx, i.UserID, i.ID); err != nil {
		return err
	}
	var name company.Name
	for k := range all {
		if all[k].Issuer != i.Issuer {
			continue
		}
		name = all[k].Name
		if err := s.endAsserted(ctx, authorization.FamilyFilter{Provider: string(name), Subject: i.Subject}); err != nil {
			return err
		}
		if err := s.replaceGrants(ctx, &all[k], i.UserID, company.Groups{}); err != nil {
			return err
		}
	}
	return s.ports.Trail.RecordChanges(ctx, newLinkChange("unlink", name, i, about))
}
