package registryrecords

import (
	"context"
	"database/sql"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Config has the settings of the registry in a database.
type Config struct {
	RemoteURLUnique bool `env:"REMOTE_URL_UNIQUE" envDefault:"true" desc:"a remote URL belongs to one server"`
}

// Servers stores the versions of servers. It implements registrystore.ServerReader and
// registrystore.ServerWriter.
type Servers struct {
	db         *database.DB
	sql        database.RegistrySyntax
	uniqueURLs bool
	near       int // nearRows, fewer in tests
	names      nameCache
	changes    *changeLog
}

var (
	_ registrystore.ServerReader = (*Servers)(nil)
	_ registrystore.ServerWriter = (*Servers)(nil)
)

// NewServers returns the store of servers.
func NewServers(db *database.DB, c Config) *Servers {
	return &Servers{
		db: db, sql: db.Registry(), uniqueURLs: c.RemoteURLUnique, near: nearRows,
		names: newNameCache(), changes: &changeLog{},
	}
}

// List implements registrystore.ServerReader.
func (s *Servers) List(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	if q.Search == "" && q.UpdatedSince.IsZero() {
		return s.listPage(ctx, q, database.Condition{})
	}
	return s.filteredPage(ctx, q)
}

// listPage returns the page of the rows of a list that meet a condition.
func (s *Servers) listPage(ctx context.Context, q registrystore.Query, c database.Condition) (registrystore.Page, error) {
	all := s.listCondition(q)
	fixed := c.Text == "" || s.sql.PlansByText
	if c.Text != "" {
		all = all.And(c.Text, c.Args...)
	}
	return s.readPage(ctx, database.Query{Text: all.Text + listOrder(q), Args: all.Args, Fixed: fixed}, database.Limit{Rows: q.Limit, Bytes: q.Bytes})
}

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
	return s.readPage(ctx, database.Query{Text: condition + newestFirst, Args: args, Fixed: true}, database.Limit{Rows: q.Limit, Bytes: q.Bytes})
}

const newestFirst = " ORDER BY v.published_at DESC"

// Outline implements registrystore.ServerReader. The databases return the size of a document
// without reading it.
func (s *Servers) Outline(ctx context.Context, name registry.Name, deleted bool) ([]registry.Edition, error) {
	text := "SELECT v.facts, " + s.sql.DocumentSize + " FROM versions AS v WHERE " + visibleOnly("v.name = ?", deleted) + newestFirst
	return database.Collect(ctx, s.db, database.Query{Text: text, Args: []any{name.String()}, Fixed: true}, func(rows *sql.Rows) (all []registry.Edition, err error) {
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

// Version implements registrystore.ServerReader.
func (s *Servers) Version(ctx context.Context, name registry.Name, version registry.Version, deleted bool) (registry.Record, error) {
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
	found, err := s.readPage(ctx, database.Query{Text: condition, Args: args, Fixed: true}, database.Limit{})
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
// page, so that the database takes the order from this index.
func (s *Servers) listCondition(q registrystore.Query) database.Condition {
	c := database.Condition{Text: "(v.name, v.version) > (?, ?)", Args: append(make([]any, 0, 8), q.AfterName, q.AfterVersion)}
	switch {
	case q.LatestOnly && !q.Deleted:
		c.Text += " AND " + s.sql.ActiveLatest
	case q.LatestOnly:
		c.Text += " AND v.is_latest"
	case !q.Deleted:
		c.Text += " AND v.status <> 'deleted'"
	}
	if q.Version != (registry.Version{}) {
		c.Text += " AND v.version = ?"
		c.Args = append(c.Args, q.Version.String())
	}
	return c
}
