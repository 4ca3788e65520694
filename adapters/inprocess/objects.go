package inprocess

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// providerObjects are the providers of company sign-in for a state in a file.
type providerObjects struct{ providers *federating.Providers }

// NewManagedKinds returns the kinds of objects of other hexagons for a state in a file.
func NewManagedKinds(p *federating.Providers, r *ruling.Operator) authority.ManagedKinds {
	return authority.ManagedKinds{Providers: &providerObjects{p}, AccessRules: &ruleObjects{r}}
}

// secretField is the field of the secret of a client in a file.
const secretField = "clientSecret"

// Parse implements [authority.ManagedObjects].
func (s *providerObjects) Parse(fields audit.Details) (audit.Object, error) {
	p, err := s.providers.Parse(fields)
	secret := fields.Text(secretField)
	if err == nil && secret != "" {
		err = company.CheckSecret(secret)
	}
	if err != nil {
		return audit.Object{}, err
	}
	return p.Object(audit.HashSecret(secret)), nil
}

// Stored implements [authority.ManagedObjects].
func (s *providerObjects) Stored(ctx context.Context) ([]authority.ManagedObject, error) {
	all, err := s.providers.List(ctx)
	objects := make([]authority.ManagedObject, len(all))
	for i := range all {
		objects[i] = newManagedObject(s.providers.Object(&all[i]), all[i].ManagedBy)
	}
	return objects, err
}

// Save implements [authority.ManagedObjects].
func (s *providerObjects) Save(ctx context.Context, fields audit.Details, owner string) error {
	p, err := s.providers.Parse(fields)
	if err != nil {
		return err
	}
	draft := federating.Draft{Provider: p}
	draft.ManagedBy = owner
	if secret := fields.Text(secretField); secret != "" {
		draft.ClientSecret = &secret
	}
	_, _, err = s.providers.Put(ctx, draft, nil)
	return err
}

// Remove implements [authority.ManagedObjects].
func (s *providerObjects) Remove(ctx context.Context, key string) error {
	return s.providers.Remove(ctx, key, nil)
}

// newManagedObject returns an object with its owner, which is no field of it.
func newManagedObject(o audit.Object, owner string) authority.ManagedObject {
	delete(o.Fields, "managedBy")
	return authority.ManagedObject{Object: o, Owner: owner}
}

// ruleObjects are the rules about calls for a state in a file.
type ruleObjects struct{ rules *ruling.Operator }

// Parse implements [authority.ManagedObjects].
func (s *ruleObjects) Parse(fields audit.Details) (audit.Object, error) {
	r, err := access.ParseRule(fields)
	return r.Object(), err
}

// Stored implements [authority.ManagedObjects].
func (s *ruleObjects) Stored(ctx context.Context) ([]authority.ManagedObject, error) {
	all, err := s.rules.List(ctx, "", access.MaxRules)
	objects := make([]authority.ManagedObject, len(all))
	for i := range all {
		objects[i] = newManagedObject(all[i].Object(), all[i].ManagedBy)
	}
	return objects, err
}

// Save implements [authority.ManagedObjects].
func (s *ruleObjects) Save(ctx context.Context, fields audit.Details, owner string) error {
	r, err := access.ParseRule(fields)
	if err != nil {
		return err
	}
	r.ManagedBy = owner
	_, _, err = s.rules.Put(ctx, r, nil)
	return err
}

// Remove implements [authority.ManagedObjects].
func (s *ruleObjects) Remove(ctx context.Context, key string) error {
	return s.rules.Remove(ctx, access.RuleName(key), nil)
}
