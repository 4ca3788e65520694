package registryrecords

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// policyStore stores the policies of publishers. It implements registrystore.Policies.
type policyStore struct{ db *database.DB }

// Add implements registrystore.Policies. A conflict is not an error of the statement, so that the
// transaction can go on.
func (s *policyStore) Add(ctx context.Context, p publisher.Policy) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewInsert().Model(newPolicyRow(p)).On("CONFLICT DO NOTHING").Exec(ctx))
		return changedOr(n, err, fault.New(fault.Conflict, "the policy already exists"))
	})
}

func (s *policyStore) Remove(ctx context.Context, id publisher.PolicyID) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewDelete().Model((*policyRow)(nil)).Where("id = ?", id).Exec(ctx))
		return changedOr(n, err, errNoPolicy())
	})
}

func (s *policyStore) Find(ctx context.Context, q registrystore.PolicyQuery) ([]publisher.Policy, error) {
	if q.IDs != nil && len(q.IDs) == 0 {
		return nil, ctx.Err()
	}
	return database.CollectAll(ctx, s.db, selectPolicies(&q), func(rows *sql.Rows) (publisher.Policy, error) {
		var row policyRow
		if err := rows.Scan(row.fields()...); err != nil {
			return publisher.Policy{}, err
		}
		return row.toPolicy()
	})
}

// selectPolicies returns the query for the rows of policies. It is prepared for the lookups that
// proofs and publications make. The words of the condition on the method are those of the index
// publisher_policies_due.
func selectPolicies(q *registrystore.PolicyQuery) database.Query {
	fixed := q.CheckedBefore.IsZero()
	var c condition
	if q.IDs != nil {
		args := make([]any, len(q.IDs))
		for i, id := range q.IDs {
			args[i] = string(id)
		}
		c = c.and("id IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
		fixed = fixed && len(args) == 1
	}
	if q.Method != "" {
		c = c.and("method = ?", string(q.Method))
	}
	if q.Domain != (publisher.Domain{}) {
		c = c.and("domain = ?", q.Domain.String())
	}
	if q.Issuer != "" {
		c = c.and("issuer = ?", q.Issuer)
	}
	if !q.CheckedBefore.IsZero() {
		c = c.and("method IN ('dns', 'http') AND checked_at < ?", database.NewInstant(q.CheckedBefore))
	}
	if q.After != "" {
		c = c.and("id > ?", string(q.After))
	}
	rows := database.Query{
		Text: "SELECT " + policyColumns + " FROM publisher_policies" + c.where() + " ORDER BY id", Args: c.args,
		Fixed: fixed,
	}
	if q.Limit > 0 {
		rows.Text += " LIMIT ?"
		rows.Args = append(rows.Args, q.Limit)
	}
	return rows
}

func (s *policyStore) Update(ctx context.Context, id publisher.PolicyID, change func(*publisher.Policy) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		var row policyRow
		switch err := s.db.LockForChange(tx.NewSelect().Model(&row).Where("id = ?", id)).Scan(ctx); {
		case errors.Is(err, sql.ErrNoRows):
			return errNoPolicy()
		case err != nil:
			return s.db.ClassifyError(err)
		}
		p, err := row.toPolicy()
		if err != nil {
			return err
		}
		if err := change(&p); err != nil {
			return err
		}
		_, err = tx.NewUpdate().Model(newPolicyRow(p)).ExcludeColumn("id").Where("id = ?", id).Exec(ctx)
		return s.db.ClassifyError(err)
	})
}

func errNoPolicy() error { return fault.New(fault.NotFound, "the policy does not exist") }
