package authrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// providerStore stores the providers of company sign-in. It implements [authstore.Providers].
type providerStore struct{ db *database.DB }

func (s *providerStore) List(ctx context.Context) ([]company.Provider, error) {
	find := database.Query{Text: `SELECT settings, secret, managed_by, created_at, succeeded_at, problem, problem_at, claims
		FROM company_providers ORDER BY name`, Fixed: true}
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (company.Provider, error) {
		var settings, secret []byte
		var managedBy, problem, claims string
		var made, succeeded, failed database.Instant
		if err := row.Scan(&settings, &secret, &managedBy, &made, &succeeded, &problem, &failed, &claims); err != nil {
			return company.Provider{}, err
		}
		var fields audit.Details
		if err := json.Unmarshal(settings, &fields); err != nil {
			return company.Provider{}, database.BrokenRow(err)
		}
		p, err := company.Parse(fields)
		if err != nil {
			return company.Provider{}, database.BrokenRow(err)
		}
		p.Secret, p.ManagedBy, p.CreatedAt = emptyToNil[auth.SealedSecret](secret), managedBy, made.Time
		p.Condition = company.Condition{SucceededAt: succeeded.Time, Problem: problem, ProblemAt: failed.Time, Claims: claims}
		return p, nil
	})
}

func (s *providerStore) Save(ctx context.Context, p company.Provider) error {
	settings, err := json.Marshal(p.Fields())
	if err != nil {
		return fmt.Errorf("write a provider as JSON: %w", err)
	}
	return s.db.InTransaction(ctx, func(ctx context.Context, _ bun.IDB) error {
		_, err := s.db.Exec(ctx, `INSERT INTO company_providers (name, settings, secret, managed_by, created_at)
			VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET settings = EXCLUDED.settings,
			secret = EXCLUDED.secret, managed_by = EXCLUDED.managed_by`, string(p.Name), string(settings),
			nilToEmpty(p.Secret), p.ManagedBy, database.NewInstant(p.CreatedAt))
		if err == nil {
			_, err = s.db.Exec(ctx, "DELETE FROM company_domains WHERE provider = ?", string(p.Name))
		}
		for i := 0; i < len(p.Domains) && err == nil; i++ {
			err = changeOne(ctx, s.db, fault.Newf(fault.Conflict, "domains: %s belongs to another provider", p.Domains[i]),
				"INSERT INTO company_domains (domain, provider) VALUES (?, ?) ON CONFLICT DO NOTHING", p.Domains[i], string(p.Name))
		}
		return err
	})
}

func (s *providerStore) Remove(ctx context.Context, name company.Name) error {
	return changeOne(ctx, s.db, noSuchRecord("provider"), "DELETE FROM company_providers WHERE name = ?", string(name))
}

func (s *providerStore) Note(ctx context.Context, name company.Name, c company.Condition) error {
	_, err := s.db.Exec(ctx, "UPDATE company_providers SET succeeded_at = ?, problem = ?, problem_at = ?, claims = ? WHERE name = ?",
		database.NewInstant(c.SucceededAt), c.Problem, database.NewInstant(c.ProblemAt), c.Claims, string(name))
	return err
}
