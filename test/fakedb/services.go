package fakedb

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Services implements [registrystore.Services].
type Services struct{ db *Database }

var _ registrystore.Services = (*Services)(nil)

// NewServices returns the service accounts of a database.
func NewServices(db *Database) *Services { return &Services{db} }

// List implements [registrystore.Services].
func (s *Services) List(ctx context.Context, after service.Name, limit int) ([]service.Account, error) {
	found, err := s.db.services.list(ctx, func(a service.Account) bool { return a.Name > after },
		func(a, b service.Account) int { return cmp.Compare(a.Name, b.Name) })
	return first(found, limit), err
}

// Get implements [registrystore.Services].
func (s *Services) Get(ctx context.Context, name service.Name) (service.Account, error) {
	return s.db.services.find(ctx, name)
}

// Put implements [registrystore.Services].
func (s *Services) Put(
	ctx context.Context, name service.Name, change func(*service.Account) (service.Account, error),
) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		var before *service.Account
		if s.db.services.has(name) {
			found := detached(s.db.services.rows[name])
			before = &found
		}
		after, err := change(before)
		if err != nil {
			return err
		}
		if before != nil {
			after.CreatedAt = before.CreatedAt
		}
		_, err = s.db.apiTokens.removeAll(ctx, func(t auth.APIToken) bool {
			return t.Workload && t.Owner == auth.ServiceOwner(string(name))
		})
		return cmp.Or(err, s.db.services.put(ctx, after))
	})
}

// Remove implements [registrystore.Services].
func (s *Services) Remove(ctx context.Context, name service.Name) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		_, tokens := s.db.apiTokens.removeAll(ctx, func(t auth.APIToken) bool {
			return t.Owner == auth.ServiceOwner(string(name))
		})
		_, grants := s.db.grants.removeAll(ctx, func(g registry.GrantRecord) bool { return g.Holder == name.Holder() })
		return cmp.Or(tokens, grants, s.db.services.remove(ctx, name))
	})
}
