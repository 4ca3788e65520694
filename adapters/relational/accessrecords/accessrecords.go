// Package accessrecords stores the rules by which calls of servers are decided in a relational
// database. It implements accessstore.Rules.
package accessrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
)

// ruleStore stores the rules, each with its fields as JSON. It implements accessstore.Rules.
type ruleStore struct{ db *database.DB }

// Set provides the store of the rules from a database.DB.
var Set = wire.NewSet(NewRules)

// NewRules returns the store of the rules.
func NewRules(db *database.DB) accessstore.Rules { return &ruleStore{db} }

// List implements accessstore.Rules.
func (s *ruleStore) List(ctx context.Context, after access.RuleName, limit int) ([]access.Rule, error) {
	return s.find(ctx, "name > ? ORDER BY name LIMIT ?", string(after), limit)
}

// Get implements accessstore.Rules.
func (s *ruleStore) Get(ctx context.Context, name access.RuleName) (access.Rule, error) {
	found, err := s.find(ctx, "name = ?", string(name))
	if err != nil || len(found) == 0 {
		if err == nil {
			err = fault.New(fault.NotFound, "no such record")
		}
		return access.Rule{}, err
	}
	return found[0], nil
}

func (s *ruleStore) find(ctx context.Context, condition string, args ...any) ([]access.Rule, error) {
	q := database.Query{Text: "SELECT settings, managed_by FROM access_rules WHERE " + condition, Args: args, Fixed: true}
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (access.Rule, error) {
		var settings []byte
		var managedBy string
		if err := row.Scan(&settings, &managedBy); err != nil {
			return access.Rule{}, err
		}
		var fields audit.Details
		if err := json.Unmarshal(settings, &fields); err != nil {
			return access.Rule{}, database.BrokenRow(err)
		}
		r, err := access.ParseRule(fields)
		if err != nil {
			return access.Rule{}, database.BrokenRow(err)
		}
		r.ManagedBy = managedBy
		return r, nil
	})
}

// Count implements accessstore.Rules.
func (s *ruleStore) Count(ctx context.Context) (n int, err error) {
	err = s.db.ScanRow(ctx, database.Query{Text: "SELECT count(*) FROM access_rules", Fixed: true}, &n)
	return n, err
}

// Save implements accessstore.Rules.
func (s *ruleStore) Save(ctx context.Context, r access.Rule) error {
	settings, err := json.Marshal(r.Fields())
	if err != nil {
		return fmt.Errorf("write a rule as JSON: %w", err)
	}
	s.db.NoteChange(ctx)
	_, err = s.db.Exec(ctx, `INSERT INTO access_rules (name, settings, managed_by) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET settings = EXCLUDED.settings, managed_by = EXCLUDED.managed_by`,
		string(r.Name), string(settings), r.ManagedBy)
	return err
}

// Remove implements accessstore.Rules.
func (s *ruleStore) Remove(ctx context.Context, name access.RuleName) error {
	s.db.NoteChange(ctx)
	return database.MustChange(s.db.Exec(ctx, "DELETE FROM access_rules WHERE name = ?", string(name)))
}
