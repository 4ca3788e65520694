// Package kindrecords stores objects of kinds in tables with the columns name, settings and managed_by.
package kindrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/management"
)

// Set provides the stores from a database.DB.
var Set = wire.NewSet(NewRules, NewClients, NewResources, NewSources, NewCollections)

// NewRules returns the store of the rules about calls.
func NewRules(db *database.DB) management.Store[access.RuleName, access.Rule] {
	return New(db, "access_rules", Form[access.RuleName, access.Rule]{
		Parse: access.ParseRule, Fields: (*access.Rule).Fields,
		Key: func(r *access.Rule) access.RuleName { return r.Name }, Owner: func(r *access.Rule) *string { return &r.ManagedBy },
	})
}

// NewClients returns the store of the clients of the authorization server.
func NewClients(db *database.DB) management.Store[oauth.ClientID, oauth.Client] {
	return New(db, "oauth_clients", Form[oauth.ClientID, oauth.Client]{
		Parse: oauth.ReadClient, Fields: func(c *oauth.Client) audit.Details { return c.Object().Fields },
		Key: func(c *oauth.Client) oauth.ClientID { return c.ID }, Owner: func(c *oauth.Client) *string { return &c.ManagedBy },
	})
}

// NewResources returns the store of the resources of the authorization server.
func NewResources(db *database.DB) management.Store[oauth.ResourceName, oauth.Resource] {
	return New(db, "oauth_resources", Form[oauth.ResourceName, oauth.Resource]{
		Parse: oauth.ParseResource, Fields: (*oauth.Resource).Fields,
		Key: func(r *oauth.Resource) oauth.ResourceName { return r.Name }, Owner: func(r *oauth.Resource) *string { return &r.ManagedBy },
	})
}

// NewSources returns the store of the headers with which remotes are asked for their tools.
func NewSources(db *database.DB) management.Store[tools.RemoteSourceName, tools.RemoteSource] {
	return New(db, "tool_sources", Form[tools.RemoteSourceName, tools.RemoteSource]{
		Parse: tools.ReadRemoteSource, Fields: (*tools.RemoteSource).StoredFields,
		Key: func(s *tools.RemoteSource) tools.RemoteSourceName { return s.Name }, Owner: func(s *tools.RemoteSource) *string { return &s.ManagedBy },
	})
}

// NewCollections returns the store of the collections of servers.
func NewCollections(db *database.DB) management.Store[view.CollectionName, view.Collection] {
	return New(db, "collections", Form[view.CollectionName, view.Collection]{
		Parse: view.ParseCollection, Fields: (*view.Collection).Fields,
		Key: func(c *view.Collection) view.CollectionName { return c.Name }, Owner: func(c *view.Collection) *string { return &c.ManagedBy },
	})
}

// Form is how the objects of a kind are stored: the fields that a description of the kind has, as JSON.
type Form[K ~string, T any] struct {
	Parse  func(audit.Details) (T, error)
	Fields func(*T) audit.Details // as Parse reads them
	Key    func(*T) K
	Owner  func(*T) *string // the file that manages it
}

// store stores the objects of a kind. It implements management.Store.
type store[K ~string, T any] struct {
	db    *database.DB
	table string
	form  Form[K, T]
}

// New returns the store of the objects in a table.
func New[K ~string, T any](db *database.DB, table string, f Form[K, T]) management.Store[K, T] {
	return &store[K, T]{db, table, f}
}

func (s *store[K, T]) List(ctx context.Context, after K, limit int) ([]T, error) {
	return s.find(ctx, "name > ? ORDER BY name LIMIT ?", string(after), limit)
}

func (s *store[K, T]) Get(ctx context.Context, key K) (one T, err error) {
	found, err := s.find(ctx, "name = ?", string(key))
	if err != nil || len(found) == 0 {
		if err == nil {
			err = fault.New(fault.NotFound, "no such record")
		}
		return one, err
	}
	return found[0], nil
}

func (s *store[K, T]) find(ctx context.Context, condition string, args ...any) ([]T, error) {
	q := database.Query{Text: "SELECT settings, managed_by FROM " + s.table + " WHERE " + condition, Args: args, Fixed: true}
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (one T, err error) {
		var settings []byte
		var managedBy string
		if err := row.Scan(&settings, &managedBy); err != nil {
			return one, err
		}
		var fields audit.Details
		if err = json.Unmarshal(settings, &fields); err == nil {
			one, err = s.form.Parse(fields)
		}
		if err != nil {
			return one, database.BrokenRow(err)
		}
		*s.form.Owner(&one) = managedBy
		return one, nil
	})
}

func (s *store[K, T]) Count(ctx context.Context) (n int, err error) {
	err = s.db.ScanRow(ctx, database.Query{Text: "SELECT count(*) FROM " + s.table, Fixed: true}, &n)
	return n, err
}

func (s *store[K, T]) Save(ctx context.Context, one T) error {
	settings, err := json.Marshal(s.form.Fields(&one))
	if err != nil {
		return fmt.Errorf("write an object of %s as JSON: %w", s.table, err)
	}
	s.db.NoteChange(ctx)
	_, err = s.db.Exec(ctx, "INSERT INTO "+s.table+` (name, settings, managed_by) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET settings = EXCLUDED.settings, managed_by = EXCLUDED.managed_by`,
		string(s.form.Key(&one)), string(settings), *s.form.Owner(&one))
	return err
}

func (s *store[K, T]) Remove(ctx context.Context, key K) error {
	s.db.NoteChange(ctx)
	return database.MustChange(s.db.Exec(ctx, "DELETE FROM "+s.table+" WHERE name = ?", string(key)))
}
