package registryrecords

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

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
	var name, version, status, reviewID string
	var hash []byte
	var published, changed database.Instant
	if err := row.Scan(&name, &version, &hash, &status, &t.Message, &published, &changed, &reviewID); err != nil {
		return t, err
	}
	var broken [4]error
	if copy(t.Hash[:], hash) != len(hash) || len(hash) != len(t.Hash) {
		broken[0] = errHash
	}
	t.Name, broken[1] = registry.ParseName(name)
	t.Version, broken[2] = registry.ParseVersion(version)
	t.Status, broken[3] = registry.ParseStatus(status)
	t.PublishedAt, t.StatusChangedAt, t.Review = published.Time, changed.Time, review.ID(reviewID)
	return t, checkRow(broken[:]...)
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
		bun.List(textsOf(names)))
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
				name.String(), bun.List(textsOf(part))); err != nil {
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
	texts := textsOf(names)
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

// textsOf returns the texts of names or versions.
func textsOf[T fmt.Stringer](list []T) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = v.String()
	}
	return texts
}
