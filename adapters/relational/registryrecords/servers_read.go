package registryrecords

import (
	"context"
	"database/sql"
	"math"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Config has the settings of the registry in a database.
type Config struct {
	RemoteURLUnique bool `env:"REMOTE_URL_UNIQUE" envDefault:"false" desc:"a remote URL belongs to one of the servers that were published here"`
}

// Servers stores the versions of servers. It implements registrystore.SnapshotReader and
// registrystore.ServerWriter.
type Servers struct {
	db         *database.DB
	sql        *syntax
	uniqueURLs bool
	near       int // nearRows, fewer in tests
	names      nameCache
	changes    *changeLog
}

var (
	_ registrystore.SnapshotReader = (*Servers)(nil)
	_ registrystore.ServerWriter   = (*Servers)(nil)
)

// NewServers returns the store of servers.
func NewServers(db *database.DB, c Config) *Servers {
	return &Servers{
		db: db, sql: syntaxOf(db), uniqueURLs: c.RemoteURLUnique, near: nearRows,
		names: newNameCache(), changes: &changeLog{},
	}
}

// Snapshot implements registrystore.SnapshotReader.
func (s *Servers) Snapshot(ctx context.Context, do func(ctx context.Context) error) error {
	return s.db.Snapshot(ctx, do)
}

// List implements registrystore.ServerReader.
func (s *Servers) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	if isFiltered(q) {
		return s.filteredPage(ctx, q)
	}
	return pageInRanges(q, func(q registrystore.Query) (registrystore.Page, error) {
		return s.listPage(ctx, q, s.listCondition(q, q.Limit+1))
	})
}

// isFiltered reports whether a list has only some of the rows of listCondition.
func isFiltered(q registrystore.Query) bool {
	return q.Search != "" || !q.UpdatedSince.IsZero() || q.WithoutDeprecated
}

// listPage returns the page of the rows of a list that meet a condition.
func (s *Servers) listPage(ctx context.Context, q registrystore.Query, c condition) (registrystore.Page, error) {
	find := database.Query{Text: c.text + listOrder(q), Args: c.args, Fixed: s.sql.plansByText || !isFiltered(q)}
	return s.readPage(ctx, find, pageLimit{rows: q.Limit, bytes: q.Bytes})
}

const notDeprecated = "v.status <> 'deprecated'"

// listOrder returns the ORDER BY clause of a list. If it has only the latest versions, each name
// has at most one, so the name is enough.
func listOrder(q registrystore.Query) string {
	if q.LatestOnly {
		return " ORDER BY v.name"
	}
	return " ORDER BY v.name, v.version"
}

// Versions implements registrystore.ServerReader.
func (s *Servers) Versions(ctx context.Context, q registrystore.VersionsQuery) (registrystore.Page, error) {
	condition, args := visibleOnly("v.name = ?", q.Deleted), []any{q.Name.String()}
	if !q.Before.IsZero() {
		condition += " AND v.published_at < ?"
		args = append(args, s.db.TimeArgument(q.Before))
	}
	if q.WithoutDeprecated {
		condition += " AND " + notDeprecated
	}
	return s.readPage(ctx, database.Query{Text: condition + newestFirst, Args: args, Fixed: true}, pageLimit{
		rows: q.Limit, bytes: q.Bytes,
	})
}

const newestFirst = " ORDER BY v.published_at DESC"

// Version implements registrystore.ServerReader.
func (s *Servers) Version(
	ctx context.Context, name registry.Name, version registry.Version, deleted bool,
) (registry.Record, error) {
	return s.findVersion(ctx, visibleOnly("v.name = ? AND v.version = ?", deleted), name.String(), version.String())
}

// Latest implements registrystore.ServerReader. It checks the status itself: with a condition on
// the status in the query, the databases would use the index of all versions that are not deleted.
func (s *Servers) Latest(ctx context.Context, name registry.Name, deleted bool) (registry.Record, error) {
	r, err := s.findVersion(ctx, "v.name = ? AND v.is_latest", name.String())
	if err == nil && !deleted && r.Status == registry.StatusDeleted {
		return registry.Record{}, errNoVersion()
	}
	return r, err
}

func visibleOnly(condition string, deleted bool) string {
	if deleted {
		return condition
	}
	return condition + " AND v.status <> 'deleted'"
}

func (s *Servers) findVersion(ctx context.Context, condition string, args ...any) (registry.Record, error) {
	found, err := s.readPage(ctx, database.Query{Text: condition, Args: args, Fixed: true}, pageLimit{})
	if err != nil {
		return registry.Record{}, err
	}
	if len(found.Records) == 0 {
		return registry.Record{}, errNoVersion()
	}
	return found.Records[0], nil
}

func errNoVersion() error { return fault.New(fault.NotFound, "no such version of a server") }

// listCondition returns the condition for the rows of a list, without its filters. An index has
// exactly these rows, in order. The condition begins at the start of the page, even of the first
// page, so that the database takes the order from this index. If the query has ranges of names, the
// condition is for the first rows, at least the given number if there are as many.
func (s *Servers) listCondition(q registrystore.Query, rows int) condition {
	if q.Names != nil {
		return s.rowsInRanges(q, rows)
	}
	c := condition{text: "(v.name, v.version) > (?, ?)", args: append(make([]any, 0, 8), q.AfterName, q.AfterVersion)}
	switch {
	case q.LatestOnly && !q.Deleted:
		c.text += " AND " + s.sql.activeLatest
	case q.LatestOnly:
		c.text += " AND v.is_latest"
	case !q.Deleted:
		c.text += " AND v.status <> 'deleted'"
	}
	if q.Version != (registry.Version{}) {
		c.text += " AND v.version = ?"
		c.args = append(c.args, q.Version.String())
	}
	return c
}

// pageLimit limits the versions that a query reads.
type pageLimit struct {
	rows  int // most records; 0 means no limit
	bytes int // the records end with the one whose document reaches this number of bytes in total
}

// versionCollector returns the records of rows up to the limit, and whether there are more.
type versionCollector func(rows *sql.Rows, limit pageLimit) (records []registry.Record, more bool, err error)

// readPage returns the page of a query, whose text begins after WHERE. It has at most limit.rows
// records, and ends with the record whose document reaches limit.bytes in total. 0 means no limit.
func (s *Servers) readPage(ctx context.Context, q database.Query, limit pageLimit) (registrystore.Page, error) {
	if limit.bytes == 0 {
		limit.bytes = math.MaxInt
	}
	if limit.rows > 0 {
		// One more row shows whether there are more. If a limit is only a placeholder, SQLite
		// prepares the statement again for each value.
		q.Text += " LIMIT CAST(? AS bigint)"
		q.Args = append(q.Args, limit.rows+1)
	}
	return database.Collect(ctx, s.db, s.sql.selectVersions(q, limit),
		func(rows *sql.Rows) (p registrystore.Page, err error) {
			p.Records, p.More, err = s.sql.collectVersions(rows, limit)
			return p, err
		})
}
