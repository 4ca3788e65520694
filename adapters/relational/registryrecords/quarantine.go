package registryrecords

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// quarantineStore stores what is in quarantine. It implements registrystore.Quarantine.
type quarantineStore struct{ db *database.DB }

// maxPriorStatuses is how many prior statuses one statement stores or deletes at most.
const maxPriorStatuses = 500

// entryColumns are the columns of an entry, in the order of the fields of registry.Quarantined.
const entryColumns = "name, version, reason, since, added_by"

// Entries implements registrystore.Quarantine. The query is prepared, because every publication
// makes it.
func (s *quarantineStore) Entries(ctx context.Context, name registry.Name) ([]registry.Quarantined, error) {
	return s.queryEntries(ctx, database.Query{
		Text: "SELECT " + entryColumns + " FROM quarantine WHERE name = ? ORDER BY version", Args: []any{
			name.String(),
		}, Fixed: true,
	})
}

func (s *quarantineStore) PriorStatuses(ctx context.Context, name registry.Name) ([]registry.PriorStatus, error) {
	q := database.Query{
		Text: "SELECT version, status, status_message, status_changed_at FROM quarantined_versions WHERE name = ? ORDER BY version",
		Args: []any{name.String()},
	}
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (p registry.PriorStatus, err error) {
		err = row.Scan(parsedInto(&p.Version, registry.ParseVersion), parsedInto(&p.Status, registry.ParseStatus), &p.Message,
			database.TimeInto(&p.ChangedAt))
		return p, err
	})
}

// Add implements registrystore.Quarantine. A conflict is not an error of the statement, so that the
// transaction can go on.
func (s *quarantineStore) Add(ctx context.Context, q registry.Quarantined, prior []registry.PriorStatus) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		added, err := s.db.ExecStatement(ctx, tx,
			"INSERT INTO quarantine ("+entryColumns+") VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			q.Name.String(), q.Version.String(), string(q.Reason), database.NewInstant(q.Since), string(q.By))
		if err := changedOr(added, err, fault.New(fault.Conflict, "it is in quarantine already")); err != nil {
			return err
		}
		return s.insertPrior(ctx, tx, q.Name, prior, "ON CONFLICT DO NOTHING")
	})
}

func (s *quarantineStore) SetPrior(ctx context.Context, name registry.Name, prior []registry.PriorStatus) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		return s.insertPrior(ctx, tx, name, prior, `ON CONFLICT (name, version) DO UPDATE SET status = excluded.status,
			status_message = excluded.status_message, status_changed_at = excluded.status_changed_at`)
	})
}

// insertPrior stores prior statuses of versions of a server. conflict says what happens to those
// that are stored already.
func (s *quarantineStore) insertPrior(
	ctx context.Context, tx bun.IDB, name registry.Name, prior []registry.PriorStatus, conflict string,
) error {
	for part := range slices.Chunk(prior, maxPriorStatuses) {
		var args []any
		for _, p := range part {
			args = append(args, name.String(), p.Version.String(), string(p.Status), p.Message,
				database.NewInstant(p.ChangedAt))
		}
		_, err := s.db.ExecStatement(ctx, tx,
			"INSERT INTO quarantined_versions (name, version, status, status_message, status_changed_at) "+
				rowsOf(len(part), 5)+" "+conflict, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *quarantineStore) Remove(
	ctx context.Context, name registry.Name, version registry.Version, released []registry.Version,
) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		removed, err := s.db.ExecStatement(ctx, tx, "DELETE FROM quarantine WHERE name = ? AND version = ?",
			name.String(), version.String())
		if err := changedOr(removed, err, fault.New(fault.NotFound, "it is not in quarantine")); err != nil {
			return err
		}
		for part := range slices.Chunk(released, maxPriorStatuses) {
			_, err := s.db.ExecStatement(ctx, tx, "DELETE FROM quarantined_versions WHERE name = ? AND version IN (?)",
				name.String(), bun.List(each.Texts(part)))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *quarantineStore) List(ctx context.Context, q registrystore.QuarantineQuery) ([]registry.Quarantined, error) {
	if len(q.Patterns) == 0 {
		return nil, ctx.Err()
	}
	names := make([]string, len(q.Patterns))
	args := []any{q.AfterName, q.AfterVersion}
	for i, p := range q.Patterns {
		of := nameMatches(p)
		names[i] = of.text
		args = append(args, of.args...)
	}
	since := ""
	if !q.Since.IsZero() {
		since, args = " AND since > ?", append(args, database.NewInstant(q.Since))
	}
	return s.queryEntries(ctx, database.Query{
		Text: "SELECT " + entryColumns + " FROM quarantine WHERE (name, version) > (?, ?) AND (" + strings.Join(names,
			" OR ") + ")" + since + " ORDER BY name, version LIMIT ?",
		Args: append(args, q.Limit),
	})
}

// nameMatches returns the condition that a pattern selects the column name: it is the name, or in
// the range of the names that begin with the prefix. No name has a character after "~".
func nameMatches(p registry.Pattern) condition {
	prefix, wild := strings.CutSuffix(p.String(), "*")
	if !wild {
		return condition{"name = ?", []any{prefix}}
	}
	return condition{"name >= ? AND name < ?", []any{prefix, prefix + "\x7f"}}
}

func (s *quarantineStore) queryEntries(ctx context.Context, q database.Query) ([]registry.Quarantined, error) {
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (e registry.Quarantined, err error) {
		err = row.Scan(parsedInto(&e.Name, registry.ParseName), optional(&e.Version, registry.ParseVersion),
			parsedInto(&e.Reason, registry.ParseReason), database.TimeInto(&e.Since), &e.By)
		return e, err
	})
}
