package registryrecords

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// mirrorStore stores the mirrors of other registries. It implements registrystore.Mirrors.
type mirrorStore struct{ db *database.DB }

// mirrorRow is a row of the table mirrors, without its lease.
type mirrorRow struct {
	bun.BaseModel `bun:"table:mirrors"`

	Name         mirror.Name   `bun:"name,pk"`
	URL          string        `bun:"url"`
	Include      string        `bun:"include"` // with a space between the patterns
	Exclude      string        `bun:"exclude"` // likewise
	ReadInterval int64         `bun:"read_interval"`
	Review       mirror.Review `bun:"review"`
	mirror.Flags
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
		ReadInterval: int64(m.Interval / time.Second), Review: m.Review, Flags: m.Flags,
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
		Interval: time.Duration(r.ReadInterval) * time.Second, Review: string(r.Review), Flags: r.Flags,
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
			Set(replacedBut[mirrorRow](tx, "name", "created_at", "last_success", "failing_since", "failures", "reason", "servers",
				"refused")).Exec(ctx))
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
	return database.ReadRows(ctx, s.db, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("name") }, (*mirrorRow).toMirror)
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

// mirroredStore stores what mirrors have taken. It implements registrystore.MirroredVersions.
type mirroredStore struct {
	db      *database.DB
	changes *changeLog
}

const mirroredColumns = "name, version, hash, status, message, published_at, status_changed_at, review"

func (s *mirroredStore) Page(
	ctx context.Context, of mirror.Name, after string, limit int,
) ([]mirror.Tracked, error) {
	return database.CollectAll(ctx, s.db, database.Query{
		Text: "SELECT " + mirroredColumns + ` FROM mirrored_versions WHERE mirror = ? AND name > ? AND name <= (
				SELECT max(name) FROM (
					SELECT DISTINCT name FROM mirrored_versions WHERE mirror = ? AND name > ? ORDER BY name LIMIT ?) AS first)
			ORDER BY name, version`,
		Args: []any{string(of), after, string(of), after, limit}, Fixed: true,
	}, scanTracked)
}

func (s *mirroredStore) OfServers(
	ctx context.Context, of mirror.Name, names []registry.Name,
) ([]mirror.Tracked, error) {
	if len(names) == 0 {
		return nil, ctx.Err()
	}
	args := []any{string(of)}
	for _, n := range names {
		args = append(args, n.String())
	}
	return database.CollectAll(ctx, s.db, database.Query{
		Text: "SELECT " + mirroredColumns + " FROM mirrored_versions WHERE mirror = ? AND name IN (?" +
			strings.Repeat(", ?", len(names)-1) +
			") ORDER BY name, version",
		Args: args, Fixed: len(names) == 1,
	}, scanTracked)
}

var errHash = errors.New("the hash of a mirrored version has another length")

// scanTracked scans a row that has mirroredColumns.
func scanTracked(row *sql.Rows) (t mirror.Tracked, err error) {
	var hash []byte
	err = row.Scan(parsedInto(&t.Name, registry.ParseName), parsedInto(&t.Version, registry.ParseVersion), &hash,
		parsedInto(&t.Status, registry.ParseStatus), &t.Message, database.TimeInto(&t.PublishedAt),
		database.TimeInto(&t.StatusChangedAt), &t.Review)
	if err == nil && (copy(t.Hash[:], hash) != len(hash) || len(hash) != len(t.Hash)) {
		err = database.BrokenRow(errHash)
	}
	return t, err
}

// putAtOnce is the number of states in one statement.
const putAtOnce = 200

func (s *mirroredStore) Put(ctx context.Context, of mirror.Name, list []mirror.Tracked) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		for part := range slices.Chunk(list, putAtOnce) {
			var args []any
			for _, t := range part {
				args = append(args, string(of), t.Name.String(), t.Version.String(), t.Hash[:],
					string(t.Status), t.Message,
					database.NewInstant(t.PublishedAt), database.NewInstant(t.StatusChangedAt), string(t.Review))
			}
			_, err := s.db.ExecStatement(ctx, tx,
				"INSERT INTO mirrored_versions (mirror, "+mirroredColumns+") "+rowsOf(len(part), 9)+
					` ON CONFLICT (mirror, name, version) DO UPDATE SET hash = excluded.hash, status = excluded.status, message = excluded.message,
				published_at = excluded.published_at, status_changed_at = excluded.status_changed_at, review = excluded.review`, args...)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *mirrorStore) Reread(ctx context.Context, of mirror.Name) error {
	_, err := s.db.Exec(ctx, "UPDATE mirrors SET last_full = NULL WHERE name = ?", string(of))
	return err
}

func (s *mirroredStore) Adopt(ctx context.Context, names []registry.Name) error {
	tx, ok := s.db.Transaction(ctx)
	if !ok {
		return errNoTransaction
	}
	s.db.AfterCommit(ctx, func() { s.changes.hint.Add(1) })
	_, err := s.db.ExecStatement(ctx, tx, "UPDATE versions SET origin = NULL WHERE name IN (?) AND origin IS NOT NULL",
		bun.List(each.Texts(names)))
	return err
}

func (s *mirroredStore) End(
	ctx context.Context, of mirror.Name, name registry.Name, dropped []registry.Version,
) error {
	tx, ok := s.db.Transaction(ctx)
	if !ok {
		return errNoTransaction
	}
	for part := range slices.Chunk(dropped, putAtOnce) {
		for _, table := range []string{"remotes", "versions"} {
			if _, err := s.db.ExecStatement(ctx, tx, "DELETE FROM "+table+" WHERE name = ? AND version IN (?)",
				name.String(), bun.List(each.Texts(part))); err != nil {
				return err
			}
		}
	}
	if _, err := s.db.ExecStatement(ctx, tx, "DELETE FROM mirrored_versions WHERE mirror = ? AND name = ?", string(of),
		name.String()); err != nil {
		return err
	}
	return s.Adopt(ctx, []registry.Name{name})
}

// Purge implements registrystore.MirroredVersions. The rows of the table servers stay: what looks
// for names finds no version with them.
func (s *mirroredStore) Purge(ctx context.Context, names []registry.Name) error {
	tx, ok := s.db.Transaction(ctx)
	if !ok {
		return errNoTransaction
	}
	texts := each.Texts(names)
	s.db.AfterCommit(ctx, func() {
		s.changes.addRemovals(texts)
		s.changes.hint.Add(1)
	})
	for _, table := range []string{"remotes", "remote_owners", "responsible", "versions"} {
		if _, err := s.db.ExecStatement(ctx, tx, "DELETE FROM "+table+" WHERE name IN (?)",
			bun.List(texts)); err != nil {
			return err
		}
	}
	return nil
}
