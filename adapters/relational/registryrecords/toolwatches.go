package registryrecords

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// watchStore stores which remotes are asked. It implements registrystore.ToolWatches.
type watchStore struct {
	db      *database.DB
	changes *changeLog
}

// watchable selects the remotes r of versions that can be asked.
const watchable = ` FROM remotes AS r JOIN versions AS v ON v.name = r.name AND v.version = r.version
	WHERE (v.status <> 'deleted' OR EXISTS (SELECT 1 FROM quarantine AS q WHERE q.name = v.name AND q.version = v.version AND q.added_by = '` +
	tools.Service + `') AND NOT EXISTS (SELECT 1 FROM quarantine AS q WHERE q.name = v.name AND q.version = ''))
	AND (r.url LIKE 'https://%' OR r.url LIKE 'http://%') AND r.url NOT LIKE '%{%'`

// The longest time between two questions to a remote that does not answer; package tools has the rule.
const longestPause = 24 * time.Hour

func (s *watchStore) Refresh(ctx context.Context, now time.Time, interval time.Duration) error {
	at, latest := database.NewInstant(now), now.Add(interval+registrystore.MaxSkew)
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		for _, statement := range []struct {
			text string
			args []any
		}{
			{`INSERT INTO tool_watches (name, url, next_at) SELECT name, url, ? FROM (SELECT DISTINCT r.name, r.url` + watchable +
				` AND NOT EXISTS (SELECT 1 FROM tool_watches AS w WHERE w.name = r.name AND w.url = r.url)) AS missing WHERE true
				ON CONFLICT DO NOTHING`, []any{at}},
			{`DELETE FROM tool_watches WHERE (lease_until IS NULL OR lease_until <= ?) AND NOT EXISTS (SELECT 1` + watchable +
				` AND r.name = tool_watches.name AND r.url = tool_watches.url)`, []any{at}},
			{`UPDATE tool_watches SET next_at = ? WHERE next_at > ? AND failures = 0 AND NOT unstable OR next_at > ?`,
				[]any{at, database.NewInstant(latest), database.NewInstant(latest.Add(longestPause))}},
		} {
			if _, err := s.db.ExecStatement(ctx, tx, statement.text, statement.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// isFree is the condition for a watch of which no one has the lease. Its arguments are those of freeBy.
const isFree = "(lease_until IS NULL OR lease_until <= ? OR lease_until > ?)"

func freeBy(l registrystore.Lease) []any {
	return []any{database.NewInstant(l.Now), database.NewInstant(l.Until.Add(registrystore.MaxSkew))}
}

func (s *watchStore) Claim(ctx context.Context, c registrystore.WatchClaim) (w tools.Watch, ok bool, err error) {
	err = s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		name, url, err := c.Name.String(), indexKey(c.Remote), error(nil)
		if name != "" {
			_, err = s.db.ExecStatement(ctx, tx, "INSERT INTO tool_watches (name, url, next_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
				name, url, database.NewInstant(c.Now))
		} else {
			name, url, err = s.findDue(ctx, tx, c)
		}
		if err != nil || name == "" {
			return err
		}
		args := append([]any{c.Holder, database.NewInstant(c.Until), name, url}, freeBy(c.Lease)...)
		n, err := s.db.ExecStatement(ctx, tx,
			"UPDATE tool_watches SET lease_holder = ?, lease_until = ? WHERE name = ? AND url = ? AND "+isFree, args...)
		if ok = n == 1; err != nil || !ok {
			return err
		}
		found, err := s.find(ctx, "name = ? AND url = ?", name, url)
		if err != nil {
			return err
		}
		w = found[0]
		if c.Remote != "" {
			w.Remote = c.Remote // the whole of it
		}
		var versions []string
		err = s.db.ScanInto(ctx, tx, &versions, "SELECT v.version"+watchable+" AND r.name = ? AND r.url = ? ORDER BY v.version", name, url)
		for _, text := range versions {
			v, broken := registry.ParseVersion(text)
			if err == nil {
				err = checkRow(broken)
			}
			w.Versions = append(w.Versions, v)
		}
		return err
	})
	return w, ok && err == nil, err
}

// findDue returns the watch that is due for the longest time; empty without one, or if too many leases are
// held.
func (s *watchStore) findDue(ctx context.Context, tx bun.IDB, c registrystore.WatchClaim) (name, url string, err error) {
	var due []owner
	args := append([]any{database.NewInstant(c.Now)}, freeBy(c.Lease)...)
	err = s.db.ScanInto(ctx, tx, &due,
		"SELECT name, url FROM tool_watches WHERE next_at <= ? AND "+isFree+" ORDER BY next_at, name, url LIMIT 1", args...)
	if err != nil || len(due) == 0 {
		return "", "", err
	}
	var held int
	err = s.db.ScanInto(ctx, tx, &held, "SELECT count(*) FROM tool_watches WHERE lease_until > ? AND lease_until <= ?", freeBy(c.Lease)...)
	if err != nil || held >= c.Most {
		return "", "", err
	}
	return due[0].Name, due[0].URL, nil
}

func (s *watchStore) find(ctx context.Context, condition string, args ...any) ([]tools.Watch, error) {
	q := database.Query{
		Text: `SELECT name, url, next_at, failures, since, problem, seen, unstable, received, notified_at, asked_at FROM tool_watches WHERE ` +
			condition + " ORDER BY url", Args: args, Fixed: true,
	}
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (w tools.Watch, err error) {
		var seen string
		err = row.Scan(parsedInto(&w.Name, registry.ParseName), &w.Remote, database.TimeInto(&w.NextAt), &w.Failures,
			database.TimeInto(&w.Since), &w.Problem, &seen, &w.Unstable, &w.Received, database.TimeInto(&w.NotifiedAt),
			database.TimeInto(&w.AskedAt))
		for _, mark := range strings.Fields(seen) {
			w.Seen = append(w.Seen, tools.Mark(mark))
		}
		return w, err
	})
}

func (s *watchStore) Save(ctx context.Context, w tools.Watch, holder string) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		s.db.AfterCommit(ctx, func() { s.changes.hint.Add(1) })
		n, err := s.db.ExecStatement(ctx, tx, `UPDATE tool_watches SET next_at = ?, failures = ?, since = ?, problem = ?, seen = ?, unstable = ?,
				received = ?, notified_at = ?, asked_at = ?, lease_holder = '', lease_until = NULL WHERE name = ? AND url = ? AND lease_holder = ?`,
			database.NewInstant(w.NextAt), w.Failures, database.NewInstant(w.Since), w.Problem, strings.Join(each.Strings(w.Seen), " "), w.Unstable,
			string(w.Received), database.NewInstant(w.NotifiedAt), database.NewInstant(w.AskedAt), w.Name.String(), indexKey(w.Remote), holder)
		return changedOr(n, err, fault.New(fault.Conflict, "the remote is not watched any more, or another one has its lease"))
	})
}

func (s *watchStore) Of(ctx context.Context, name registry.Name) ([]tools.Watch, error) {
	return s.find(ctx, "name = ?", name.String())
}

func (s *watchStore) CountChanged(ctx context.Context) (n int, err error) {
	err = s.db.ScanRow(ctx, database.Query{Text: `SELECT count(*) FROM (SELECT DISTINCT name, version FROM tool_lists
		WHERE NOT approved AND source = 'asked' AND state IN ('changed', 'unstable')) AS changed`, Fixed: true}, &n)
	return n, err
}
