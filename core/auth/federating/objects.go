package federating

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/ports/management"
)

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
	drafts := make([]Draft, len(all))
	for i := range all {
		drafts[i].Provider = all[i]
	}
	return drafts, err
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
