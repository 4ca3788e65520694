package fakedb

import (
	"cmp"
	"context"
	"math"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// Views implements [registrystore.Views].
type Views struct{ *table[view.Name, view.View] }

// NewViews returns the views of a database.
func NewViews(db *Database) *Views { return &Views{db.views} }

// Remove implements [registrystore.Views].
func (s *Views) Remove(ctx context.Context, name view.Name) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		_, err := s.db.viewTokens.removeAll(ctx, func(t view.Token) bool { return t.View == name })
		return cmp.Or(s.remove(ctx, name), err)
	})
}

// List implements [registrystore.Views].
func (s *Views) List(ctx context.Context) ([]view.View, error) {
	return s.list(ctx, all, func(a, b view.View) int { return cmp.Compare(a.Name, b.Name) })
}

// AddToken implements [registrystore.Views].
func (s *Views) AddToken(ctx context.Context, t view.Token) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		if !s.has(t.View) {
			return s.errNotFound()
		}
		return s.db.viewTokens.insert(ctx, t)
	})
}

// RemoveToken implements [registrystore.Views].
func (s *Views) RemoveToken(ctx context.Context, v view.Name, name view.TokenName) error {
	return s.db.viewTokens.remove(ctx, viewTokenKey{v, name})
}

// Tokens implements [registrystore.Views].
func (s *Views) Tokens(ctx context.Context) ([]view.Token, error) {
	return s.db.viewTokens.list(ctx, all, func(a, b view.Token) int {
		return cmp.Or(cmp.Compare(a.View, b.View), cmp.Compare(a.Name, b.Name))
	})
}

// Kind implements [management.Store].
type Kind[K ~string, R any] struct{ *table[K, R] }

// NewAccessRules returns the access rules of a database.
func NewAccessRules(db *Database) *Kind[access.RuleName, access.Rule] {
	return &Kind[access.RuleName, access.Rule]{db.accessRules}
}

// NewResources returns the resources of a database.
func NewResources(db *Database) *Kind[oauth.ResourceName, oauth.Resource] {
	return &Kind[oauth.ResourceName, oauth.Resource]{db.resources}
}

// NewToolSources returns the tool sources of a database.
func NewToolSources(db *Database) *Kind[tools.RemoteSourceName, tools.RemoteSource] {
	return &Kind[tools.RemoteSourceName, tools.RemoteSource]{db.toolSources}
}

// List implements [management.Store].
func (s *Kind[K, R]) List(ctx context.Context, after K, limit int) ([]R, error) {
	return s.listFirst(ctx, limit, func(r R) bool { return s.key(r) > after },
		func(a, b R) int { return cmp.Compare(s.key(a), s.key(b)) })
}

// Count implements [management.Store].
func (s *Kind[K, R]) Count(ctx context.Context) (int, error) {
	found, err := s.List(ctx, "", math.MaxInt32)
	return len(found), err
}

// Clients are the registered clients of a database.
type Clients struct {
	*Kind[oauth.ClientID, oauth.Client]
}

// NewClients returns the registered clients of a database.
func NewClients(db *Database) Clients {
	return Clients{&Kind[oauth.ClientID, oauth.Client]{db.clients}}
}

// Save implements [management.Store]. A secret in clear is not stored.
func (s Clients) Save(ctx context.Context, c oauth.Client) error {
	c.NewSecret, c.Secret = false, ""
	return s.put(ctx, c)
}

// Services implements [servicestore.Services].
type Services struct {
	*table[service.Name, service.Account]
}

// NewServices returns the service accounts of a database.
func NewServices(db *Database) *Services { return &Services{db.services} }

// List implements [servicestore.Services].
func (s *Services) List(ctx context.Context, after service.Name, limit int) ([]service.Account, error) {
	return s.listFirst(ctx, limit, func(a service.Account) bool { return a.Name > after },
		func(a, b service.Account) int { return cmp.Compare(a.Name, b.Name) })
}

// Put implements [servicestore.Services].
func (s *Services) Put(
	ctx context.Context, name service.Name, change func(*service.Account) (service.Account, error),
) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		var before *service.Account
		if s.has(name) {
			found := detached(s.rows[name])
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
		return cmp.Or(err, s.put(ctx, after))
	})
}

// Remove implements [servicestore.Services].
func (s *Services) Remove(ctx context.Context, name service.Name) error {
	return s.db.run(ctx, func(ctx context.Context) error {
		_, tokens := s.db.apiTokens.removeAll(ctx, func(t auth.APIToken) bool {
			return t.Owner == auth.ServiceOwner(string(name))
		})
		_, grants := s.db.grants.removeAll(ctx, func(g registry.GrantRecord) bool { return g.Holder == name.Holder() })
		return cmp.Or(tokens, grants, s.remove(ctx, name))
	})
}

// AppliedStates implements [registrystore.AppliedStates].
type AppliedStates struct {
	*table[string, registry.AppliedState]
}

// NewAppliedStates returns the states of files of a database.
func NewAppliedStates(db *Database) *AppliedStates { return &AppliedStates{db.applied} }

// List implements [registrystore.AppliedStates].
func (s *AppliedStates) List(ctx context.Context) ([]registry.AppliedState, error) {
	return s.list(ctx, all, func(a, b registry.AppliedState) int { return cmp.Compare(a.Owner, b.Owner) })
}
