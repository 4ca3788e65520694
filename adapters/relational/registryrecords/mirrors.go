package registryrecords

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// mirrorStore stores the mirrors of other registries. It implements registrystore.Mirrors.
type mirrorStore struct{ db *database.DB }

// mirrorRow is a row of the table mirrors, without its lease.
type mirrorRow struct {
	bun.BaseModel `bun:"table:mirrors"`

	Name         mirror.Name      `bun:"name,pk"`
	URL          string           `bun:"url"`
	Include      string           `bun:"include"` // with a space between the patterns
	Exclude      string           `bun:"exclude"` // likewise
	ReadInterval int64            `bun:"read_interval"`
	Review       mirror.Review    `bun:"review"`
	Lenient      bool             `bun:"lenient"`
	CreatedAt    database.Instant `bun:"created_at"`
	NextAt       database.Instant `bun:"next_at"`
	LastSuccess  database.Instant `bun:"last_success"`
	LastFull     database.Instant `bun:"last_full"`
	FailingSince database.Instant `bun:"failing_since"`
	Failures     int              `bun:"failures"`
	Reason       string           `bun:"reason"`
	Servers      int              `bun:"servers"`
	Refused      string           `bun:"refused"` // mirror.Refusals
	ManagedBy    string           `bun:"managed_by"`
}

func newMirrorRow(m mirror.Mirror) *mirrorRow {
	row := &mirrorRow{
		Name: m.Name, URL: m.URL.Address(), Include: joinPatterns(m.Selection.Include),
		Exclude:      joinPatterns(m.Selection.Exclude),
		ReadInterval: int64(m.Interval / time.Second), Review: m.Review, Lenient: m.Lenient,
		CreatedAt: database.NewInstant(m.CreatedAt), ManagedBy: m.ManagedBy,
	}
	row.setState(m.State)
	return row
}

func (r *mirrorRow) setState(s mirror.State) {
	r.NextAt, r.LastSuccess, r.LastFull = database.NewInstant(s.NextAt), database.NewInstant(s.LastSuccess),
		database.NewInstant(s.LastFull)
	r.FailingSince, r.Failures, r.Reason = database.NewInstant(s.FailingSince), s.Failures, s.Reason
	r.Servers, r.Refused = s.Servers, s.Refused.String()
}

// toMirror returns the mirror of a row. It returns fault.Internal if a value breaks a rule of the
// model.
func (r *mirrorRow) toMirror() (mirror.Mirror, error) {
	m, err := mirror.New(mirror.Draft{
		Name: string(r.Name), URL: r.URL, Include: strings.Fields(r.Include), Exclude: strings.Fields(r.Exclude),
		Interval: time.Duration(r.ReadInterval) * time.Second, Review: string(r.Review), Lenient: r.Lenient,
		ManagedBy: r.ManagedBy,
	}, r.CreatedAt.Time)
	refused, broken := mirror.ParseRefusals(r.Refused)
	m.State = mirror.State{
		NextAt: r.NextAt.Time, LastSuccess: r.LastSuccess.Time, LastFull: r.LastFull.Time,
		FailingSince: r.FailingSince.Time, Failures: r.Failures, Reason: r.Reason, Servers: r.Servers, Refused: refused,
	}
	return m, checkRow(err, broken)
}

func (s *mirrorStore) Put(ctx context.Context, m mirror.Mirror) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		_, err := s.db.AffectedRows(tx.NewInsert().Model(newMirrorRow(m)).On("CONFLICT (name) DO UPDATE").
			Set(replaced("url", "include", "exclude", "read_interval", "review", "lenient", "managed_by", "next_at",
				"last_full")).Exec(ctx))
		return err
	})
}

func (s *mirrorStore) Remove(ctx context.Context, name mirror.Name) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.ExecStatement(ctx, tx, "DELETE FROM mirrors WHERE name = ?", string(name))
		if err == nil && n == 0 {
			return errNoMirror()
		}
		if err == nil {
			_, err = s.db.ExecStatement(ctx, tx, "DELETE FROM mirrored_versions WHERE mirror = ?", string(name))
		}
		return err
	})
}

func (s *mirrorStore) List(ctx context.Context) ([]mirror.Mirror, error) {
	find := database.Query{Text: `SELECT name, url, include, exclude, read_interval, review, lenient, created_at,
		next_at, last_success, last_full, failing_since, failures, reason, servers, refused, managed_by
		FROM mirrors ORDER BY name`,
		Fixed: true}
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (mirror.Mirror, error) {
		var r mirrorRow
		err := row.Scan(&r.Name, &r.URL, &r.Include, &r.Exclude, &r.ReadInterval, &r.Review, &r.Lenient, &r.CreatedAt,
			&r.NextAt, &r.LastSuccess, &r.LastFull, &r.FailingSince, &r.Failures, &r.Reason, &r.Servers, &r.Refused,
			&r.ManagedBy)
		if err != nil {
			return mirror.Mirror{}, err
		}
		return r.toMirror()
	})
}

func (s *mirrorStore) SaveState(ctx context.Context, name mirror.Name, holder string, state mirror.State) error {
	row := &mirrorRow{Name: name}
	row.setState(state)
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.AffectedRows(tx.NewUpdate().Model(row).
			Column("next_at", "last_success", "last_full", "failing_since", "failures", "reason", "servers", "refused").
			Where("name = ? AND lease_holder = ?", string(name), holder).Exec(ctx))
		return changedOr(n, err,
			fault.New(fault.Conflict, "the mirror does not exist any more, or another one reads for it"))
	})
}

// Lease implements registrystore.Mirrors. In PostgreSQL, the row stays locked until the end of the
// transaction.
func (s *mirrorStore) Lease(ctx context.Context, name mirror.Name, l registrystore.Lease) (ok bool, err error) {
	err = s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		n, err := s.db.ExecStatement(ctx, tx, `UPDATE mirrors SET lease_holder = ?, lease_until = ?
			WHERE name = ? AND (lease_holder = ? OR lease_until IS NULL OR lease_until <= ? OR lease_until > ?)`,
			l.Holder, database.NewInstant(l.Until), string(name), l.Holder, database.NewInstant(l.Now),
			database.NewInstant(l.Until.Add(registrystore.MaxSkew)))
		if ok = n == 1; err != nil || ok {
			return err
		}
		var found []string
		if err := s.db.ScanInto(ctx, tx, &found, "SELECT name FROM mirrors WHERE name = ?", string(name)); err != nil {
			return err
		}
		if len(found) == 0 {
			return errNoMirror()
		}
		return nil
	})
	return ok, err
}

func (s *mirrorStore) Release(ctx context.Context, name mirror.Name, holder string) error {
	_, err := s.db.Exec(ctx,
		"UPDATE mirrors SET lease_holder = '', lease_until = NULL WHERE name = ? AND lease_holder = ?",
		string(name), holder)
	return err
}

func errNoMirror() error { return fault.New(fault.NotFound, "the mirror does not exist") }
