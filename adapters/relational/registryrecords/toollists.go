package registryrecords

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// toolListStore stores tool lists. It implements registrystore.ToolLists.
type toolListStore struct {
	db      *database.DB
	changes *changeLog
}

// change runs a change in a transaction. After its commit, this process knows of it.
func (s *toolListStore) change(ctx context.Context, do func(ctx context.Context, tx bun.IDB) error) error {
	return s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		s.db.AfterCommit(ctx, func() { s.changes.hint.Add(1) })
		return do(ctx, tx)
	})
}

func (s *toolListStore) OfVersion(
	ctx context.Context, name registry.Name, version registry.Version,
) ([]tools.Stored, error) {
	return s.read(ctx, `'', name, version, state FROM tool_lists WHERE name = ? AND version = ? ORDER BY part, source, approved DESC`,
		name.String(), version.String())
}

func (s *toolListStore) Servers(ctx context.Context) ([]registry.Name, error) {
	q := database.Query{Text: "SELECT DISTINCT name FROM tool_lists ORDER BY name", Fixed: true}
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (name registry.Name, err error) {
		err = row.Scan(parsedInto(&name, registry.ParseName))
		return name, err
	})
}

func (s *toolListStore) OfReview(ctx context.Context, id registry.ReviewID) ([]tools.Stored, error) {
	return s.read(ctx, `review, (SELECT r.name FROM reviews AS r WHERE r.id = review), (SELECT r.version FROM reviews AS r WHERE r.id = review),
		'pending' FROM review_tool_lists WHERE review = ? ORDER BY part, source`, string(id))
}

// read returns the lists that a query selects, which begins with the columns that tables name in their own way.
func (s *toolListStore) read(ctx context.Context, query string, args ...any) ([]tools.Stored, error) {
	q := database.Query{Text: "SELECT part, source, sent_at, sender, policy, makers, content, " + query, Args: args}
	return database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (l tools.Stored, err error) {
		var makers, content []byte
		err = row.Scan(parsedInto(&l.Part, tools.ParsePartKey), parsedInto(&l.Source, tools.ParseSource), database.TimeInto(&l.At),
			&l.By.Key, &l.By.Policy, &makers, &content, &l.Review, parsedInto(&l.Name, registry.ParseName),
			parsedInto(&l.Version, registry.ParseVersion), parsedInto(&l.State, tools.ParseState))
		if err != nil {
			return l, err
		}
		noMakers := json.Unmarshal(makers, &l.By.Makers)
		l.List, err = tools.Parse(content)
		return l, checkRow(noMakers, err)
	})
}

func (s *toolListStore) Put(ctx context.Context, l tools.Stored) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		if l.Review != "" {
			_, err := s.db.ExecStatement(ctx, tx,
				"INSERT INTO review_tool_lists (review, part, source, sent_at, sender, policy, makers, content) "+rowsOf(1, 8)+
					` ON CONFLICT (review, part, source) DO UPDATE SET sent_at = excluded.sent_at, sender = excluded.sender,
					policy = excluded.policy, makers = excluded.makers, content = excluded.content`,
				string(l.Review), string(l.Part), string(l.Source), database.NewInstant(l.At), l.By.Key, string(l.By.Policy),
				encodeArray(l.By.Makers), string(l.List.Canonical()))
			return err
		}
		_, err := s.db.ExecStatement(ctx, tx,
			"INSERT INTO tool_lists (name, version, part, source, approved, state, sent_at, sender, policy, makers, content, outline) "+
				rowsOf(1, 12)+` ON CONFLICT (name, version, part, source, approved) DO UPDATE SET state = excluded.state,
				sent_at = excluded.sent_at, sender = excluded.sender, policy = excluded.policy, makers = excluded.makers,
				content = excluded.content, outline = excluded.outline`,
			l.Name.String(), l.Version.String(), string(l.Part), string(l.Source), l.State == tools.Approved, string(l.State),
			database.NewInstant(l.At), l.By.Key, string(l.By.Policy), encodeArray(l.By.Makers), string(l.List.Canonical()), l.List.Outline())
		return err
	})
}

func (s *toolListStore) Withdraw(ctx context.Context, l tools.Stored) error {
	return s.change(ctx, func(ctx context.Context, tx bun.IDB) error {
		removed, err := s.db.ExecStatement(ctx, tx,
			"DELETE FROM tool_lists WHERE name = ? AND version = ? AND part = ? AND source = ? AND NOT approved",
			l.Name.String(), l.Version.String(), string(l.Part), string(l.Source))
		return changedOr(removed, err, fault.New(fault.NotFound, "there is no list that is not approved"))
	})
}

// readTools adds the tool lists of listed versions to servers, ordered by name, whose names meet a condition. Lists that
// wait are left out, and those of parts that the document does not have any more.
func (s listingStore) readTools(ctx context.Context, servers []access.Listing, names condition) error {
	q := database.Query{
		Text: `SELECT t.name, t.version, t.part, t.source, t.approved, t.sent_at, t.outline,
			CASE WHEN t.outline IS NULL THEN t.content END, v.document
			FROM tool_lists AS t JOIN versions AS v ON v.name = t.name AND v.version = t.version WHERE t.name ` + names.text +
			" AND t.state <> ? AND v.status <> 'deleted' ORDER BY t.name, t.version, t.part, t.source, t.approved DESC",
		Args: append(slices.Clip(names.args), string(tools.Pending)),
	}
	_, err := database.CollectAll(ctx, s.db, q, func(row *sql.Rows) (none struct{}, err error) {
		name, l, err := scanToolList(row)
		i, found := slices.BinarySearchFunc(servers, name, func(l access.Listing, name string) int {
			return strings.Compare(l.Name.String(), name)
		})
		if err == nil && found && l.Place != "" {
			servers[i].Tools = append(servers[i].Tools, l)
		}
		return none, err
	})
	for i := range servers {
		if !slices.ContainsFunc(servers[i].Tools, func(l access.ToolList) bool { return l.Approved }) {
			servers[i].Tools = nil // nothing is decided by it
		}
	}
	return err
}

// scanToolList scans a row of readTools. The list of a part that the document does not have has no place.
func scanToolList(row *sql.Rows) (name string, l access.ToolList, err error) {
	var part, source string
	var at database.Instant
	var outline, content sql.NullString
	var document []byte
	if err = row.Scan(&name, &l.Version, &part, &source, &l.Approved, &at, &outline, &content, &document); err != nil {
		return name, l, err
	}
	parts := tools.PartsOf(document)
	if i := slices.IndexFunc(parts, func(p tools.Part) bool { return string(p.Key) == part }); i >= 0 {
		l.Place = parts[i].String()
	}
	if content.Valid { // the row is older than the column
		list, err := tools.Parse([]byte(content.String))
		if err != nil {
			return name, l, checkRow(err)
		}
		outline.String = list.Outline()
	}
	l.At, l.Part = at.Time, part+" "+source
	l.Tools, err = tools.ParseOutline(outline.String)
	return name, l, checkRow(err)
}
