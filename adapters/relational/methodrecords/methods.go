// Package methodrecords stores the methods of the API in a relational database. It implements
// methodstore.Store.
package methodrecords

import (
	"context"
	"encoding/json"

	"github.com/google/wire"
	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
)

// Methods stores the methods. It implements methodstore.Store.
type Methods struct{ db *database.DB }

var _ methodstore.Store = (*Methods)(nil)

// Set provides the store of methods from a database.DB.
var Set = wire.NewSet(NewMethods, wire.Bind(new(methodstore.Store), new(*Methods)))

// NewMethods returns the store of methods.
func NewMethods(db *database.DB) *Methods { return &Methods{db} }

// methodRow is a row of the table.
type methodRow struct {
	bun.BaseModel `bun:"table:methods"`
	ID            int    `bun:"id,pk"`
	Path          string `bun:"path"`
	ServiceID     int    `bun:"service_id"`
	ServiceName   string `bun:"service_name"`
	Parameters    string `bun:"parameters"`
}

// List implements methodstore.Store.
func (s *Methods) List(ctx context.Context) ([]catalogue.Method, error) {
	rows, err := database.Read(ctx, s.db, func(ctx context.Context, db bun.IDB) (rows []methodRow, err error) {
		err = db.NewSelect().Model(&rows).Order("id").Scan(ctx)
		return rows, s.db.ClassifyError(err)
	})
	if err != nil {
		return nil, err
	}
	all := make([]catalogue.Method, 0, len(rows))
	for _, r := range rows {
		var parameters []string
		if err := json.Unmarshal([]byte(r.Parameters), &parameters); err != nil {
			return nil, database.BrokenRow(err)
		}
		all = append(all, catalogue.Method{
			ID: catalogue.MethodID(r.ID), Path: r.Path,
			ServiceID: catalogue.ServiceID(r.ServiceID), ServiceName: r.ServiceName, Parameters: parameters,
		})
	}
	return all, nil
}

// Add implements methodstore.Store.
func (s *Methods) Add(ctx context.Context, m catalogue.Method) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		return s.insertMethods(ctx, tx, []catalogue.Method{m})
	})
}

// Remove implements methodstore.Store.
func (s *Methods) Remove(ctx context.Context, id catalogue.MethodID) error {
	return database.MustChange(s.db.Exec(ctx, "DELETE FROM methods WHERE id = ?", int(id)))
}

// Put implements methodstore.Store.
func (s *Methods) Put(ctx context.Context, methods []catalogue.Method, replace bool) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		// It removes all methods before it adds any, so that two methods can exchange their paths.
		if err := s.deleteMethods(ctx, tx, methods, replace); err != nil {
			return err
		}
		return s.insertMethods(ctx, tx, methods)
	})
}

func (s *Methods) deleteMethods(ctx context.Context, tx bun.IDB, methods []catalogue.Method, all bool) error {
	if all {
		_, err := s.db.ExecStatement(ctx, tx, "DELETE FROM methods")
		return err
	}
	for _, m := range methods {
		if _, err := s.db.ExecStatement(ctx, tx, "DELETE FROM methods WHERE id = ?", int(m.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Methods) insertMethods(ctx context.Context, tx bun.IDB, methods []catalogue.Method) error {
	for _, m := range methods {
		parameters, err := json.Marshal(append([]string{}, m.Parameters...))
		if err != nil {
			return s.db.ClassifyError(err)
		}
		row := methodRow{
			ID: int(m.ID), Path: m.Path, ServiceID: int(m.ServiceID), ServiceName: m.ServiceName,
			Parameters: string(parameters),
		}
		if _, err := tx.NewInsert().Model(&row).Exec(ctx); err != nil {
			err = s.db.ClassifyError(err)
			if fault.Is(err, fault.Conflict) {
				return fault.Wrap(fault.Conflict, "another method has the id or the path", err)
			}
			return err
		}
	}
	return nil
}
