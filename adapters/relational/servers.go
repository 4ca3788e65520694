package relational

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
)

// Config says how the registry is kept.
type Config struct {
	RemoteURLUnique bool `env:"REMOTE_URL_UNIQUE" envDefault:"true" desc:"whether a remote URL belongs to one server alone (true or false)"`
}

// Validate finds nothing to refuse.
func (c Config) Validate() error { return nil }

// Servers keeps the versions of servers: serverstore.Reader and Writer.
type Servers struct {
	db         *DB
	uniqueURLs bool
}

var (
	_ serverstore.Reader = (*Servers)(nil)
	_ serverstore.Writer = (*Servers)(nil)
)

// NewServers returns the store of servers.
func NewServers(db *DB, c Config) *Servers {
	return &Servers{db: db, uniqueURLs: c.RemoteURLUnique}
}

const (
	releaseColumns = "v.name, v.version, v.status, v.status_message, v.status_changed_at, v.published_at, v.updated_at, v.is_latest"
	recordQuery    = "SELECT " + releaseColumns + ", v.document FROM versions AS v WHERE "
	notDeleted     = " AND v.status <> 'deleted'"
)

// List answers serverstore.Reader.
func (s *Servers) List(ctx context.Context, q serverstore.Query) ([]registry.Record, error) {
	db := s.db.read(ctx)
	w, err := s.selection(ctx, db, q)
	if err != nil {
		return nil, err
	}
	// At most one version of a name is latest, so that its order is the name's.
	order := " ORDER BY v.name, v.version LIMIT ?"
	if q.LatestOnly {
		order = " ORDER BY v.name LIMIT ?"
	}
	return s.records(ctx, db, w.String()+order, append(w.args, q.Limit), q.Limit)
}

// Versions answers serverstore.Reader.
func (s *Servers) Versions(ctx context.Context, name registry.Name, deleted bool) ([]registry.Record, error) {
	return s.records(ctx, s.db.read(ctx), visible("v.name = ?", deleted)+" ORDER BY v.published_at DESC", []any{name.String()}, 0)
}

// Version answers serverstore.Reader.
func (s *Servers) Version(ctx context.Context, name registry.Name, version registry.Version, deleted bool) (registry.Record, error) {
	return s.one(ctx, visible("v.name = ? AND v.version = ?", deleted), name.String(), version.String())
}

// Latest answers serverstore.Reader.
func (s *Servers) Latest(ctx context.Context, name registry.Name, deleted bool) (registry.Record, error) {
	return s.one(ctx, visible("v.name = ? AND v.is_latest", deleted), name.String())
}

func visible(condition string, deleted bool) string {
	if deleted {
		return condition
	}
	return condition + notDeleted
}

func (s *Servers) one(ctx context.Context, condition string, args ...any) (registry.Record, error) {
	found, err := s.records(ctx, s.db.read(ctx), condition, args, 1)
	if err != nil {
		return registry.Record{}, err
	}
	if len(found) == 0 {
		return registry.Record{}, fault.New(fault.NotFound, "", "no such version of a server")
	}
	return found[0], nil
}

// records runs a query of whole records that returns about n of them.
func (s *Servers) records(ctx context.Context, db bun.IDB, condition string, args []any, n int) ([]registry.Record, error) {
	rows, err := db.QueryContext(ctx, recordQuery+condition, args...)
	if err != nil {
		return nil, s.db.fault(err)
	}
	defer func() { _ = rows.Close() }() // rows.Err has told what went wrong
	all := make([]registry.Record, 0, n)
	var row releaseRow
	into := append(row.into(), nil)
	for rows.Next() {
		var r registry.Record
		into[len(into)-1] = &r.Document
		if err := rows.Scan(into...); err != nil {
			return nil, s.db.fault(err)
		}
		if r.Release, err = row.release(); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, s.db.fault(rows.Err())
}

// releaseRow is what releaseColumns select.
type releaseRow struct {
	name, version, status, message string
	changed, published, updated    instant
	latest                         bool
}

// into returns where to scan the columns.
func (r *releaseRow) into() []any {
	return []any{&r.name, &r.version, &r.status, &r.message, &r.changed, &r.published, &r.updated, &r.latest}
}

// release builds the release of a row, by the rules of its parts: a row that
// breaks them was changed by someone else, which is a defect and no fault of
// the caller.
func (r *releaseRow) release() (registry.Release, error) {
	name, err := registry.ParseName(r.name)
	if err != nil {
		return registry.Release{}, spoiltRow(err)
	}
	version, err := registry.ParseVersion(r.version)
	if err != nil {
		return registry.Release{}, spoiltRow(err)
	}
	status, err := registry.ParseStatus(r.status)
	if err != nil {
		return registry.Release{}, spoiltRow(err)
	}
	return registry.Release{
		Name: name, Version: version, Status: status, StatusMessage: r.message,
		StatusChangedAt: r.changed.Time, PublishedAt: r.published.Time, UpdatedAt: r.updated.Time,
		Latest: r.latest,
	}, nil
}

// spoiltRow tells of a stored value that breaks a rule of the model.
func spoiltRow(err error) error {
	return fault.Wrap(fault.Internal, "", "a record of the database breaks a rule", err)
}

// selection is the condition of a listing with its arguments.
type selection struct {
	strings.Builder
	args []any
}

func (w *selection) and(condition string, args ...any) {
	if w.Len() > 0 {
		w.WriteString(" AND ")
	}
	w.WriteString(condition)
	w.args = append(w.args, args...)
}

// selection returns the condition that selects the page. It begins where the
// page does, also at the start, so that the order comes from an index.
func (s *Servers) selection(ctx context.Context, db bun.IDB, q serverstore.Query) (*selection, error) {
	w := &selection{args: make([]any, 0, 8)}
	w.and("(v.name, v.version) > (?, ?)", q.AfterName, q.AfterVersion)
	if q.LatestOnly {
		w.and("v.is_latest")
	}
	if !q.Deleted {
		w.and("v.status <> 'deleted'")
	}
	if q.Version != (registry.Version{}) {
		w.and("v.version = ?", q.Version.String())
	}
	if q.Search != "" {
		condition, args, err := s.search(ctx, db, q)
		if err != nil {
			return nil, err
		}
		w.and(condition, args...)
	}
	if !q.UpdatedSince.IsZero() {
		condition, err := s.since(ctx, db, at(q.UpdatedSince))
		if err != nil {
			return nil, err
		}
		w.and(condition, at(q.UpdatedSince))
	}
	return w, nil
}

// few is up to how many rows are looked up and sorted rather than found while
// walking in order. PostgreSQL estimates by itself how many there are; SQLite
// has no idea, and would go the wrong way on a large registry.
const few = 2000

// minTrigram is the shortest text that SQLite's index of trigrams finds.
const minTrigram = 3

// search returns the condition that the name has the text in it, its letters
// in any case.
func (s *Servers) search(ctx context.Context, db bun.IDB, q serverstore.Query) (condition string, args []any, err error) {
	pattern := "%" + likeEscaper.Replace(q.Search) + "%"
	if s.db.dialect.Name == PostgreSQL {
		return `v.name IN (SELECT name FROM servers WHERE lower(name) LIKE lower(? COLLATE "C") ESCAPE '\' AND name >= ?)`,
			[]any{pattern, q.AfterName}, nil
	}
	matching := `FROM servers WHERE name LIKE ? ESCAPE '\' AND name >= ?`
	args = []any{pattern, q.AfterName}
	if utf8.RuneCountInString(q.Search) >= minTrigram {
		// A cross join, in SQLite, is one whose order stays as it is written.
		matching = `FROM server_parts CROSS JOIN servers ON servers.id = server_parts.rowid
			WHERE servers.name LIKE ? ESCAPE '\' AND servers.name >= ? AND server_parts MATCH ?`
		args = append(args, `"`+strings.ReplaceAll(q.Search, `"`, `""`)+`"`)
	}
	many, err := s.exceeds(ctx, db, matching, args)
	if many {
		return `v.name LIKE ? ESCAPE '\'`, args[:1], err
	}
	return "v.name IN (SELECT servers.name " + matching + ")", args, err
}

// likeEscaper makes the signs of LIKE plain.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// since returns the condition, of one argument, that a version was updated
// after a time.
func (s *Servers) since(ctx context.Context, db bun.IDB, t instant) (condition string, err error) {
	if s.db.dialect.Name == PostgreSQL {
		return "v.updated_at > ?", nil
	}
	many, err := s.exceeds(ctx, db, "FROM versions WHERE updated_at > ?", []any{t})
	if many {
		return "+v.updated_at > ?", err // the sign keeps the index of updates out
	}
	return "v.rowid IN (SELECT rowid FROM versions WHERE updated_at > ?)", err
}

// exceeds tells whether there are more than a few rows.
func (s *Servers) exceeds(ctx context.Context, db bun.IDB, rows string, args []any) (bool, error) {
	var n int
	err := s.db.scan(ctx, db, &n, "SELECT count(*) FROM (SELECT 1 "+rows+" LIMIT ?)", append(slices.Clone(args), few+1)...)
	return n > few, err
}
