package relational

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/serverstore"
)

// Config says how the registry is kept.
type Config struct {
	RemoteURLUnique bool `env:"REMOTE_URL_UNIQUE" envDefault:"true" desc:"a remote URL belongs to one server"`
}

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

// List answers serverstore.Reader.
func (s *Servers) List(ctx context.Context, q serverstore.Query) (serverstore.Page, error) {
	found, err := s.search(ctx, q)
	if err != nil {
		return serverstore.Page{}, err
	}
	// A page needs no more names than it has rows, as long as each has one. Its
	// last row is the one that tells whether there are more.
	names := q.Limit + 2
	p, err := s.list(ctx, q, found.first(names))
	if err != nil || !found.byName || p.More {
		return p, err
	}
	if more, err := s.exceeds(ctx, found.rows, found.args, names); err != nil || !more {
		return p, err
	}
	return s.list(ctx, q, found.first(math.MaxInt32))
}

// list returns the page of a listing whose names meet a condition.
func (s *Servers) list(ctx context.Context, q serverstore.Query, c condition) (serverstore.Page, error) {
	w, err := s.selection(ctx, q)
	if err != nil {
		return serverstore.Page{}, err
	}
	if c.text != "" {
		w.and(c.text, c.args...)
	}
	// At most one version of a name is latest, so that its order is the name's.
	order := " ORDER BY v.name, v.version"
	if q.LatestOnly {
		order = " ORDER BY v.name"
	}
	return s.page(ctx, query{w.String() + order, w.args, w.fixed}, extent{rows: q.Limit, bytes: q.Bytes, room: q.Limit + 1})
}

// someVersions is how many versions of a server are made room for at first.
const someVersions = 8

// Versions answers serverstore.Reader.
func (s *Servers) Versions(ctx context.Context, q serverstore.VersionsQuery) (serverstore.Page, error) {
	condition, args := visible("v.name = ?", q.Deleted), []any{q.Name.String()}
	if !q.Before.IsZero() {
		condition += " AND v.published_at < ?"
		args = append(args, s.db.argument(q.Before))
	}
	return s.page(ctx, query{condition + newestFirst, args, true}, extent{rows: q.Limit, bytes: q.Bytes, room: someVersions})
}

const newestFirst = " ORDER BY v.published_at DESC"

// Outline answers serverstore.Reader. Neither database reads a document to tell
// how large it is.
func (s *Servers) Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error) {
	text := "SELECT v.facts, " + s.size("v.document") + " FROM versions AS v WHERE " + visible("v.name = ?", deleted) + newestFirst
	return collected(ctx, s.db, query{text, []any{name.String()}, true}, func(rows *sql.Rows) (all []registry.Edition, err error) {
		var facts string
		var size int
		for rows.Next() {
			if err := rows.Scan(&facts, &size); err != nil {
				return nil, err
			}
			r, err := parseFacts(facts)
			if err != nil {
				return nil, err
			}
			all = append(all, registry.Edition{Release: r, Size: size})
		}
		return all, nil
	})
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
	return condition + " AND v.status <> 'deleted'"
}

func (s *Servers) one(ctx context.Context, condition string, args ...any) (registry.Record, error) {
	found, err := s.records(ctx, query{condition, args, true}, extent{room: 1})
	if err != nil {
		return registry.Record{}, err
	}
	if len(found.Records) == 0 {
		return registry.Record{}, fault.New(fault.NotFound, "", "no such version of a server")
	}
	return found.Records[0], nil
}

// selection is the condition of a listing with its arguments.
type selection struct {
	strings.Builder
	args  []any
	fixed bool // no value decides by which index the rows are found
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
func (s *Servers) selection(ctx context.Context, q serverstore.Query) (*selection, error) {
	w := &selection{args: make([]any, 0, 8), fixed: s.planned() || q.Search == "" && q.UpdatedSince.IsZero()}
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
	if !q.UpdatedSince.IsZero() {
		moment := s.db.argument(q.UpdatedSince)
		condition, err := s.since(ctx, moment)
		if err != nil {
			return nil, err
		}
		w.and(condition, moment)
	}
	return w, nil
}

// few is up to how many rows are looked up and sorted rather than found while
// walking in order. PostgreSQL estimates by itself how many there are; SQLite
// has no idea, and would go the wrong way on a large registry.
const few = 2000

// minTrigram is the shortest text that SQLite's index of trigrams finds.
const minTrigram = 3

// condition is a condition with its arguments.
type condition struct {
	text string
	args []any
}

// search is how the names are found that have a text in them.
type search struct {
	byName bool      // the names are looked up first, with rows
	rows   string    // FROM and WHERE of the names
	args   []any     // of rows
	walk   condition // where they are not: what to ask of each name, empty = nothing
}

// first returns the condition that a version's name is among the first n that
// were found.
func (f search) first(n int) condition {
	if !f.byName {
		return f.walk
	}
	return condition{
		"v.name IN (SELECT name FROM (SELECT servers.name AS name " + f.rows + " ORDER BY servers.name LIMIT CAST(? AS bigint)) AS found)",
		append(slices.Clone(f.args), n),
	}
}

// search returns how to find the names that have the text in them, its letters
// in any case.
func (s *Servers) search(ctx context.Context, q serverstore.Query) (search, error) {
	if q.Search == "" {
		return search{}, nil
	}
	pattern := "%" + likeEscaper.Replace(q.Search) + "%"
	if s.db.dialect.Name == PostgreSQL {
		return search{
			byName: true, args: []any{pattern, q.AfterName},
			rows: `FROM servers WHERE lower(servers.name) LIKE lower(? COLLATE "C") ESCAPE '\' AND servers.name >= ?`,
		}, nil
	}
	walk := condition{`v.name LIKE ? ESCAPE '\'`, []any{pattern}}
	f := search{byName: true, walk: walk, args: []any{pattern, q.AfterName}, rows: `FROM servers WHERE servers.name LIKE ? ESCAPE '\' AND servers.name >= ?`}
	candidates, args := f.rows, f.args
	if utf8.RuneCountInString(q.Search) >= minTrigram {
		phrase := `"` + strings.ReplaceAll(q.Search, `"`, `""`) + `"`
		candidates, args = "FROM server_parts WHERE server_parts MATCH ?", []any{phrase}
		// The index finds the names that have the phrase in them and no others, so
		// none is compared again. A cross join, in SQLite, is one whose order stays
		// as it is written.
		f.rows = `FROM server_parts CROSS JOIN servers ON servers.id = server_parts.rowid
			WHERE server_parts MATCH ? AND servers.name >= ?`
		f.args = []any{phrase, q.AfterName}
	}
	many, err := s.exceeds(ctx, candidates, args, few)
	f.byName = !many
	return f, err
}

// likeEscaper makes the signs of LIKE plain.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// since returns the condition, of one argument, that a version was updated
// after a moment.
func (s *Servers) since(ctx context.Context, moment any) (condition string, err error) {
	if s.db.dialect.Name == PostgreSQL {
		return "v.updated_at > ?", nil
	}
	many, err := s.exceeds(ctx, "FROM versions WHERE updated_at > ?", []any{moment}, few)
	if many {
		return "+v.updated_at > ?", err // the sign keeps the index of updates out
	}
	return "v.rowid IN (SELECT rowid FROM versions WHERE updated_at > ?)", err
}

// exceeds tells whether there are more than n rows.
func (s *Servers) exceeds(ctx context.Context, rows string, args []any, n int) (bool, error) {
	found, err := s.db.number(ctx, query{
		"SELECT count(*) FROM (SELECT 1 " + rows + " LIMIT CAST(? AS bigint)) AS found", append(slices.Clone(args), n+1), s.planned(),
	})
	return found > n, err
}

// planned tells that the database plans a query by its text alone, whatever its
// arguments are.
func (s *Servers) planned() bool { return s.db.dialect.Name == SQLite }
