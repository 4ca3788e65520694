package registryrecords

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// serviceStore stores service accounts. It implements servicestore.Services.
type serviceStore struct{ db *database.DB }

// serviceRow is a row of the table service_accounts.
type serviceRow struct {
	bun.BaseModel `bun:"table:service_accounts"`

	Name        service.Name     `bun:"name,pk"`
	Description string           `bun:"description"`
	State       service.State    `bun:"state"`
	Workloads   string           `bun:"workloads"`
	ManagedBy   string           `bun:"managed_by"`
	CreatedAt   database.Instant `bun:"created_at"`
}

// workloadRow is a workload in the column workloads.
type workloadRow struct {
	Method   publisher.Method  `json:"method"`
	Issuer   string            `json:"issuer"`
	Subject  string            `json:"subject"`
	Claims   map[string]string `json:"claims,omitempty"`
	Audience string            `json:"audience,omitempty"`
	Scopes   scope.Set         `json:"scopes"`
}

func newServiceRow(a service.Account) (*serviceRow, error) {
	workloads := make([]workloadRow, len(a.Workloads))
	for i, w := range a.Workloads {
		workloads[i] = workloadRow{
			w.Identity.Method, w.Identity.Issuer, w.Identity.Subject.String(), w.Identity.Claims, w.Audience, w.Scopes,
		}
	}
	text, err := json.Marshal(workloads)
	if err != nil {
		return nil, fmt.Errorf("write workloads as JSON: %w", err)
	}
	return &serviceRow{
		Name: a.Name, Description: a.Description, State: a.State, Workloads: string(text), ManagedBy: a.ManagedBy,
		CreatedAt: database.NewInstant(a.CreatedAt),
	}, nil
}

// toAccount returns the account of a row. It returns fault.Internal if a value cannot be read.
func (r *serviceRow) toAccount() (service.Account, error) {
	var workloads []workloadRow
	if err := json.Unmarshal([]byte(r.Workloads), &workloads); err != nil {
		return service.Account{}, database.BrokenRow(err)
	}
	a := service.Account{
		Name: r.Name, Description: r.Description, State: r.State, ManagedBy: r.ManagedBy, CreatedAt: r.CreatedAt.Time,
	}
	for _, w := range workloads {
		subject, err := publisher.ParseSubjectPattern(w.Subject)
		if err != nil {
			return service.Account{}, database.BrokenRow(err)
		}
		a.Workloads = append(a.Workloads, service.Workload{
			Identity: publisher.Policy{Method: w.Method, Issuer: w.Issuer, Subject: subject, Claims: w.Claims},
			Audience: w.Audience, Scopes: w.Scopes,
		})
	}
	return a, nil
}

func (s *serviceStore) List(ctx context.Context, after service.Name, limit int) ([]service.Account, error) {
	return database.ReadRows(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("name > ?", after).Order("name").Limit(limit)
	}, (*serviceRow).toAccount)
}

func (s *serviceStore) Get(ctx context.Context, name service.Name) (service.Account, error) {
	return database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (service.Account, error) {
		return s.find(ctx, db.NewSelect().Where("name = ?", name))
	})
}

func errNoService() error { return fault.New(fault.NotFound, "the service account does not exist") }

func (s *serviceStore) find(ctx context.Context, q *bun.SelectQuery) (service.Account, error) {
	var row serviceRow
	if err := s.db.ClassifyFind(q.Model(&row).Scan(ctx), errNoService()); err != nil {
		return service.Account{}, err
	}
	return row.toAccount()
}

// Put implements servicestore.Services. A row that another call adds in between makes the
// statement wait for it, and the change begins again with that row.
func (s *serviceStore) Put(
	ctx context.Context, name service.Name, change func(*service.Account) (service.Account, error),
) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		for {
			done, err := s.putOnce(ctx, tx, name, change)
			if done || err != nil {
				return err
			}
		}
	})
}

func (s *serviceStore) putOnce(
	ctx context.Context, tx bun.IDB, name service.Name, change func(*service.Account) (service.Account, error),
) (done bool, err error) {
	var before *service.Account
	found, err := s.find(ctx, s.db.LockForChange(tx.NewSelect().Where("name = ?", name)))
	if err == nil {
		before = &found
	} else if !fault.Is(err, fault.NotFound) {
		return false, err
	}
	after, err := change(before)
	if err != nil {
		return false, err
	}
	row, err := newServiceRow(after)
	if err != nil {
		return false, err
	}
	if before == nil {
		n, err := s.db.AffectedRows(tx.NewInsert().Model(row).On("CONFLICT DO NOTHING").Exec(ctx))
		return n == 1, err
	}
	if _, err := tx.NewUpdate().Model(row).ExcludeColumn("name", "created_at").Where("name = ?", name).
		Exec(ctx); err != nil {
		return false, s.db.ClassifyError(err)
	}
	_, err = s.db.Exec(ctx, "DELETE FROM api_tokens WHERE service = ? AND workload", name)
	return true, err
}

// Remove implements servicestore.Services. The database deletes the tokens of the account.
func (s *serviceStore) Remove(ctx context.Context, name service.Name) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewDelete().Model((*serviceRow)(nil)).Where("name = ?", name).Exec(ctx))
		if err := changedOr(n, err, errNoService()); err != nil {
			return err
		}
		_, err = s.db.Exec(ctx, "DELETE FROM grants WHERE holder = ?", string(name.Holder()))
		return err
	})
}
