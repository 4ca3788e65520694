package federating

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/trust"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Linked is an identity with the provider at which it can be used; empty without one.
type Linked struct {
	company.Identity

	Provider company.Name
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
			linked[i].Provider = p.Name
		}
	}
	return linked, nil
}

func hasIssuer(all []company.Identity, issuer string) bool {
	return slices.ContainsFunc(all, func(i company.Identity) bool { return i.Issuer == issuer })
}

// addIdentity links the identity of claims to an account, with its event.
func (s *Service) addIdentity(
	ctx context.Context, p *company.Provider, c *company.Claims, user auth.UserID,
) (company.Identity, error) {
	now := s.ports.Clock.Now()
	i := company.Identity{
		ID: secrets.NewUUID[company.IdentityID](s.ports.Entropy), UserID: user, Issuer: c.Issuer, Subject: c.Subject,
		Email: c.Email, LinkedAt: now, LastUsedAt: now, ConfirmedAt: now, Membership: p.MembershipOf(c),
	}
	if err := s.ports.Identities.Add(ctx, i); err != nil {
		return i, err
	}
	return i, s.ports.Trail.RecordChanges(ctx, newLinkChange("link", p.Name, &i))
}

// link links the identity of claims to the person who has begun that in a session. It returns
// fault.Forbidden if that is not the session of the browser at FULL_TRUST any more, and fault.Conflict
// if the identity belongs to another person, or the person has another identity of the issuer.
func (s *Service) link(
	ctx context.Context, session *auth.Session, one *begun, p *company.Provider, c *company.Claims,
) error {
	if session == nil || session.ID != one.Link {
		return fault.New(fault.Forbidden, "the session in which you began to link a company sign-in has ended")
	}
	if err := trust.Require(session.TrustLevel, auth.FullTrust); err != nil {
		return err
	}
	if !p.Admits(c.Groups.Names) {
		return refusedError{company.NoGroup, session.UserID, p}.asFault()
	}
	err := s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		found, err := s.ports.Identities.Find(ctx, c.Issuer, c.Subject)
		switch {
		case err == nil && found.UserID == session.UserID:
			return nil
		case err == nil:
			return fault.New(fault.Conflict, "this identity is linked to another account")
		case !fault.Is(err, fault.NotFound):
			return err
		}
		others, err := s.ports.Identities.Of(ctx, session.UserID)
		if err != nil {
			return err
		}
		if hasIssuer(others, p.Issuer) {
			return fault.New(fault.Conflict, "your account has another identity of this company sign-in: unlink it first")
		}
		_, err = s.addIdentity(ctx, p, c, session.UserID)
		return err
	})
	if err == nil {
		s.noteSuccess(ctx, p, "")
	}
	return err
}

// Unlink removes an identity of a person, with the grants that its providers gave. It returns
// fault.NotFound, and fault.Conflict if the person has no other way to sign in.
func (s *Service) Unlink(ctx context.Context, user auth.UserID, id company.IdentityID) error {
	return s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		var account auth.Account
		err := s.ports.Accounts.Update(ctx, user, func(a *auth.Account) error { // of parallel calls, one runs
			account = *a
			return nil
		})
		if err != nil {
			return err
		}
		all, err := s.ports.Identities.Of(ctx, user)
		if err != nil {
			return err
		}
		n := slices.IndexFunc(all, func(i company.Identity) bool { return i.ID == id })
		if n < 0 {
			return auth.NotFound("identity")
		}
		removed := all[n]
		keys, err := s.ports.Passkeys.Of(ctx, user)
		if err != nil {
			return err
		}
		providers, err := s.ports.Providers.List(ctx)
		ways := company.Ways{Account: account, Identities: slices.Delete(all, n, n+1), Passkeys: keys}
		if err == nil && !ways.Any(providers, s.config.PasswordsOff) {
			err = fault.New(fault.Conflict, "this is your only way to sign in: set a password, add a passkey or link another one first")
		}
		if err != nil {
			return err
		}
		return s.remove(ctx, &removed, providers)
	})
}

// remove removes an identity with its grants and the event, in the transaction of the context.
func (s *Service) remove(ctx context.Context, i *company.Identity, all []company.Provider) error {
	if err := s.ports.Identities.Remove(ctx, i.UserID, i.ID); err != nil {
		return err
	}
	var name company.Name
	for k := range all {
		if all[k].Issuer != i.Issuer {
			continue
		}
		name = all[k].Name
		if err := s.replaceGrants(ctx, &all[k], i.UserID, company.Groups{}); err != nil {
			return err
		}
	}
	return s.ports.Trail.RecordChanges(ctx, newLinkChange("unlink", name, i))
}
