// Package federating has the use cases of company sign-in: operators configure providers, people
// sign in at them, and what a provider says about a person decides about the account and the grants.
// The rules are in package company.
package federating

import (
	"context"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ProviderPorts are the dependencies of Providers. All stores belong to one adapter, so that a
// transaction spans them.
type ProviderPorts struct {
	Providers    authstore.Providers
	Identities   authstore.Identities
	Passkeys     authstore.Passkeys
	Logins       authstore.Logins
	Sessions     authstore.Sessions
	Families     authorization.Families // of assertions; nil without any
	Transactions transaction.Runner
	Grants       authority.Granter
	Remote       identity.Providers
	Sealer       secrets.Sealer
	Cache        sessioncache.Cache
	Trail        *auditing.Trail
	Clock        clock.Clock
}

// Providers lists, makes, changes, tests and removes providers for operators. Each method returns
// fault.Unavailable when the database fails. It is safe for concurrent use.
type Providers struct{ ports ProviderPorts }

// NewProviders returns Providers.
func NewProviders(p ProviderPorts) *Providers { return &Providers{p} }

// List returns all providers, ordered by name.
func (s *Providers) List(ctx context.Context) ([]company.Provider, error) {
	return s.ports.Providers.List(ctx)
}

// Get returns a provider, or fault.NotFound.
func (s *Providers) Get(ctx context.Context, name string) (company.Provider, error) {
	all, err := s.ports.Providers.List(ctx)
	if err != nil {
		return company.Provider{}, err
	}
	if p := company.Named(all, name); p != nil {
		return *p, nil
	}
	return company.Provider{}, auth.NotFound("provider")
}

// Parse returns the provider of fields for Put. The error is that of company.Parse, and
// fault.Invalid for a grant of a group that cannot be given.
func (s *Providers) Parse(fields audit.Details) (company.Provider, error) {
	p, err := company.Parse(fields)
	if err != nil {
		return p, err
	}
	for i, g := range p.GroupGrants {
		if err := s.ports.Grants.CheckGrant(authority.GrantText{Action: g.Action, Resource: g.Resource}); err != nil {
			return p, fault.Newf(fault.Invalid, "groupGrants[%d]: %s", i, fault.PublicMessage(err))
		}
	}
	return p, nil
}

// Draft is a provider for Put.
type Draft struct {
	company.Provider

	// Secret of the client; nil keeps the stored one, and an empty one removes it.
	ClientSecret *string
	// Force enforces the provider even if no operator could sign in any more.
	Force bool
}

// Put makes a provider, or replaces one, and reports whether it is new. One that is the same stays,
// without an event. The file that manages it stays the same unless the draft has another. It returns
// fault.Conflict if another provider has one of the domains, and for more than company.MaxProviders, and
// the errors of authority.CheckGiven for grants of groups and of authority.RefuseToken for domains.
func (s *Providers) Put(
	ctx context.Context, d Draft, check func(*company.Provider) error,
) (stored company.Provider, created bool, err error) {
	var ended []auth.SessionID
	err = s.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		all, err := s.ports.Providers.List(ctx)
		if err != nil {
			return err
		}
		before := company.Named(all, string(d.Name))
		if check != nil {
			if err := check(before); err != nil {
				return err
			}
		}
		if before == nil && len(all) >= company.MaxProviders {
			return fault.Newf(fault.Conflict, "there are %d providers already: remove one that is not needed", len(all))
		}
		if d.Enforce && !d.Force && (before == nil || !before.Enforce) {
			if err := s.checkEnforceable(ctx); err != nil {
				return err
			}
		}
		if err := checkGiven(ctx, &d.Provider, before); err != nil {
			return err
		}
		stored, created = d.Provider, before == nil
		ended, err = s.save(ctx, &stored, before, d.ClientSecret)
		return err
	})
	if err == nil {
		s.ports.Cache.Drop(ctx, ended...)
	}
	return stored, created, err
}

// checkGiven returns the error of authority.CheckGiven for the grants that a provider gives and the one
// before it did not, which may be nil. All are new if somebody else says who is in the groups.
func checkGiven(ctx context.Context, p, before *company.Provider) error {
	same := before != nil && p.Issuer == before.Issuer && p.ClientID == before.ClientID && p.GroupsClaim == before.GroupsClaim
	for _, g := range p.GroupGrants {
		if same && slices.Contains(before.GroupGrants, g) {
			continue
		}
		if err := authority.CheckGiven(ctx, g.Action); err != nil {
			return err
		}
	}
	return nil
}

// provenFor is how long ago an operator may have signed in at a provider when one is enforced.
const provenFor = 30 * 24 * time.Hour

// checkEnforceable returns fault.Conflict unless a person who can operate has lately signed in at a
// provider, or has a passkey.
func (s *Providers) checkEnforceable(ctx context.Context) error {
	operators, err := s.ports.Grants.Operators(ctx)
	if err != nil {
		return err
	}
	since := s.ports.Clock.Now().Add(-provenFor)
	for _, id := range operators {
		found, err := s.ports.Identities.Of(ctx, auth.UserID(id))
		if err != nil {
			return err
		}
		if slices.ContainsFunc(found, func(i company.Identity) bool { return i.LastUsedAt.After(since) }) {
			return nil
		}
		keys, err := s.ports.Passkeys.Of(ctx, auth.UserID(id))
		if err != nil || len(auth.CredentialsOf(keys)) > 0 {
			return err
		}
	}
	return fault.New(fault.Conflict, "enforce: no person who can operate has a passkey or has signed in at a provider within "+
		"30 days, so that nobody could come in; link one and sign in there first, or force it")
}

// save stores a provider in place of another one, which may be nil, with its event. It returns the sessions
// that have ended with the other one, if that had another issuer or client.
func (s *Providers) save(
	ctx context.Context, p, before *company.Provider, secret *string,
) (ended []auth.SessionID, err error) {
	p.CreatedAt = s.ports.Clock.Now().UTC().Truncate(time.Microsecond)
	var replaced *audit.Object
	if before != nil {
		o := before.Object(s.hashSecret(before))
		replaced = &o
		p.CreatedAt, p.Condition = before.CreatedAt, before.Condition
		if p.Issuer == before.Issuer && p.ClientID == before.ClientID {
			p.Secret = before.Secret // which is only for whom it was given: another issuer would learn it
		} else if ended, err = s.endAll(ctx, p.Name); err != nil {
			return nil, err
		}
		if p.ManagedBy == "" {
			p.ManagedBy = before.ManagedBy
		}
	}
	if secret != nil {
		p.Secret = nil
	}
	if secret != nil && *secret != "" {
		sealed, err := s.ports.Sealer.Seal([]byte(*secret), providerSeal(p).about)
		if err != nil {
			return nil, err
		}
		p.Secret = sealed
	}
	after := p.Object(s.hashSecret(p))
	change, differs := audit.Operate(audit.AccountChange, "provider", replaced, &after)
	if !differs {
		p.Secret = before.Secret
		return nil, nil
	}
	if len(p.Domains) > 0 || before != nil && len(before.Domains) > 0 { // it signs the people of the domains in
		if err := authority.RefuseToken(ctx, "make or change a provider with domains"); err != nil {
			return nil, err
		}
	}
	if before != nil && (p.Issuer != before.Issuer || p.ClientID != before.ClientID) {
		change.Details["sessionsInvalidated"] = audit.Number(len(ended))
	}
	err = s.ports.Providers.Save(ctx, *p)
	if err == nil && p.Condition.Problem != "" { // it was one of the provider as it was before
		p.Condition = company.Condition{SucceededAt: p.Condition.SucceededAt, Claims: p.Condition.Claims}
		err = s.ports.Providers.Note(ctx, p.Name, p.Condition)
	}
	if err != nil {
		return nil, err
	}
	return ended, s.ports.Trail.RecordChanges(ctx, change)
}

// endAll ends the sessions that came from a provider, and what came of its assertions, in the transaction of
// the context.
func (s *Providers) endAll(ctx context.Context, name company.Name) ([]auth.SessionID, error) {
	done, err := endSessions(ctx, s.ports.Logins, s.ports.Sessions, authstore.LoginQuery{
		Provider: name, At: s.ports.Clock.Now(),
	}, auth.EndProvider)
	if err == nil {
		err = endFamilies(ctx, s.ports.Families, authorization.FamilyFilter{Provider: string(name)}, s.ports.Clock.Now(), auth.EndProvider)
	}
	return done.all(), err
}

// hashSecret returns a hash by which secrets are compared; empty without a secret.
func (s *Providers) hashSecret(p *company.Provider) string {
	if len(p.Secret) == 0 {
		return ""
	}
	secret, _, err := openSealed(s.ports.Sealer, p.Secret, providerSeal(p))
	if err != nil { // of another key: every secret is another one
		secret = p.Secret
	}
	return audit.HashSecret(secret)
}

// Remove removes a provider. Its grants and the sessions that came from it end; the identities stay.
// It returns fault.NotFound, the error of check, and fault.Conflict with code last_operator if no one
// could operate without its grants.
func (s *Providers) Remove(ctx context.Context, name string, check func(*company.Provider) error) error {
	ended, err := transaction.Do(transaction.Exclusive(ctx), s.ports.Transactions,
		func(ctx context.Context) ([]auth.SessionID, error) {
			found, err := s.Get(ctx, name)
			if err == nil && check != nil {
				err = check(&found)
			}
			if err == nil {
				err = s.ports.Grants.RemoveOrigin(ctx, found.Name.Origin())
			}
			if err == nil {
				err = s.ports.Providers.Remove(ctx, found.Name)
			}
			if err != nil {
				return nil, err
			}
			ended, err := s.endAll(ctx, found.Name)
			if err != nil {
				return nil, err
			}
			details := audit.Details{"sessionsInvalidated": audit.Number(len(ended))}
			return ended, s.ports.Trail.RecordChanges(ctx, audit.Change{
				Category: audit.AccountChange, ByOperator: true, Action: "provider_remove",
				Details: audit.About(details, found.Object("")),
			})
		})
	if err == nil {
		s.ports.Cache.Drop(ctx, ended...)
	}
	return err
}

// Test reads the discovery document and the keys of a provider. One that did not answer and works is not
// away any more; one that has refused this service is until a sign-in or a check succeeds. It returns
// fault.NotFound.
func (s *Providers) Test(ctx context.Context, name string) ([]identity.Step, error) {
	p, err := s.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	steps := s.ports.Remote.Test(ctx, &p)
	away := p.Condition.IsAway()
	if away && p.Condition.Problem == company.ProblemClient {
		steps = append(steps, identity.Step{Name: "client", Message: "when last used, " + company.ProblemClient})
	}
	if away && !slices.ContainsFunc(steps, func(one identity.Step) bool { return !one.OK }) {
		err = s.ports.Providers.Note(ctx, p.Name, company.Condition{SucceededAt: p.Condition.SucceededAt, Claims: p.Condition.Claims})
	}
	return steps, err
}

// TestDraft tests a provider that is not stored, as Test does. It returns the error of Parse.
func (s *Providers) TestDraft(ctx context.Context, fields audit.Details) ([]identity.Step, error) {
	p, err := s.Parse(fields)
	if err != nil {
		return nil, err
	}
	return s.ports.Remote.Test(ctx, &p), nil
}

// Objects returns the providers as objects of any kind. Force of a change is that of a Draft.
func (s *Providers) Objects() management.Objects {
	return managing.Of[Draft]{
		Of: &company.Kind, From: s.draft, Show: s.show,
		All: managing.PageOf(s.drafts, func(d *Draft) string { return string(d.Name) }),
		One: func(ctx context.Context, key string) (Draft, error) {
			p, err := s.Get(ctx, key)
			return Draft{Provider: p}, err
		},
		Store: func(ctx context.Context, c management.Change, check func(*Draft) error) (Draft, bool, error) {
			d, err := s.draft(c.Fields)
			if err != nil {
				return d, false, err
			}
			d.ManagedBy, d.Force = c.Owner, c.Force
			p, created, err := s.Put(ctx, d, checkProvider(check))
			return Draft{Provider: p}, created, err
		},
		Drop: func(ctx context.Context, key string, _ management.Change, check func(*Draft) error) error {
			return s.Remove(ctx, key, checkProvider(check))
		},
	}
}

// draft returns the provider that fields describe, with its secret if they have one. An empty secret
// removes the stored one.
func (s *Providers) draft(fields audit.Details) (d Draft, err error) {
	if d.Provider, err = s.Parse(fields); err != nil {
		return d, err
	}
	if _, given := fields[company.SecretField]; given {
		secret := fields.Text(company.SecretField)
		d.ClientSecret = &secret
		if secret != "" {
			err = company.CheckSecret(secret)
		}
	}
	return d, err
}

func (s *Providers) drafts(ctx context.Context) ([]Draft, error) {
	all, err := s.List(ctx)
	return each.Map(all, func(p company.Provider) Draft { return Draft{Provider: p} }), err
}

// show returns a provider with the hash of its secret, by which secrets are compared.
func (s *Providers) show(d *Draft) management.Object {
	hash, fields := s.hashSecret(&d.Provider), d.Fields()
	if d.ClientSecret != nil {
		hash = audit.HashSecret(*d.ClientSecret)
	}
	fields.Set(audit.FieldSecret, hash)
	return management.Object{
		Object: audit.Object{Kind: company.Kind.Name, Key: string(d.Name), Fields: fields}, Owner: d.ManagedBy,
		Fixed: audit.Details{"createdAt": audit.Time(d.CreatedAt), "hasSecret": audit.Flag(hash != "")},
		State: audit.Details{
			"lastSuccessAt": audit.Time(d.Condition.SucceededAt), "lastProblem": audit.Text(d.Condition.Problem),
			"lastProblemAt": audit.Time(d.Condition.ProblemAt),
		},
	}
}

func checkProvider(check func(*Draft) error) func(*company.Provider) error {
	if check == nil {
		return nil
	}
	return func(current *company.Provider) error {
		if current == nil {
			return check(nil)
		}
		return check(&Draft{Provider: *current})
	}
}
