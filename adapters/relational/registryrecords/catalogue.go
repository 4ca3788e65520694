package registryrecords

import (
	"cmp"
	"context"
	"database/sql"
	"hash/crc32"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// catalogueStore implements registrystore.Catalogue.
type catalogueStore struct {
	*Servers
	size *atomic.Pointer[countedSize]
}

var _ registrystore.Catalogue = catalogueStore{}

// Index implements registrystore.Catalogue. The names are taken from the backlog before their
// versions are read, so that a change that is not seen yet puts its name back.
func (s catalogueStore) Index(ctx context.Context, most int) (more bool, err error) {
	waiting := database.Query{Text: "SELECT name FROM catalogue_backlog ORDER BY name LIMIT 1", Fixed: true}
	if names, err := database.CollectAll(ctx, s.db, waiting, database.ScanText[string]); err != nil || len(names) == 0 {
		return false, err
	}
	err = s.db.InTransaction(ctx, func(ctx context.Context, tx bun.IDB) error {
		var names []string
		err := s.db.ScanInto(ctx, tx, &names, `DELETE FROM catalogue_backlog WHERE name IN (
			SELECT name FROM catalogue_backlog ORDER BY name LIMIT ?`+s.sql.passLocked+`) RETURNING name`, most)
		if err != nil || len(names) == 0 {
			return err
		}
		slices.Sort(names)
		more = len(names) == most
		left, err := s.indexNames(ctx, tx, names)
		if err != nil || len(left) == 0 {
			return err
		}
		more = true
		_, err = s.db.ExecStatement(ctx, tx, "INSERT INTO catalogue_backlog (name) "+rowsOf(len(left), 1), anyOf(left)...)
		return err
	})
	return more, err
}

func (s catalogueStore) Progress(ctx context.Context) (p registrystore.Progress, err error) {
	waiting := database.Query{Text: "SELECT count(*) FROM catalogue_backlog", Fixed: true}
	if err := s.db.ScanRow(ctx, waiting, &p.Waiting); err != nil || p.Waiting == 0 {
		return p, err
	}
	all := database.Query{Text: "SELECT count(*) FROM versions WHERE is_latest", Fixed: true}
	return p, s.db.ScanRow(ctx, all, &p.Servers)
}

// indexNames makes the rows of servers. It returns the names of those that it did not come to,
// since the documents are large.
func (s catalogueStore) indexNames(ctx context.Context, tx bun.IDB, names []string) (left []string, err error) {
	find := database.Query{Text: s.ofNames("v.is_latest", names), Args: anyOf(names)}
	find.Text += " ORDER BY v.name"
	p, err := s.readPage(ctx, find, pageLimit{bytes: indexedBytes})
	if err != nil {
		return nil, err
	}
	digests, err := s.indexTools(ctx, tx, names)
	if err != nil {
		return nil, err
	}
	owners, err := (&ownerStore{s.db}).read(ctx, "name IN (?"+strings.Repeat(", ?", len(names)-1)+")", anyOf(names)...)
	if err != nil {
		return nil, err
	}
	const columns = 9
	rows := make([]catalogueRow, len(p.Records))
	args := make([]any, 0, columns*len(p.Records))
	for i := range p.Records {
		name := p.Records[i].Name.String()
		rows[i] = newCatalogueRow(p.Records[i], digests[name], owners[name])
		args = append(args, rows[i].columns()...)
	}
	if len(rows) > 0 {
		_, err = s.db.ExecStatement(ctx, tx, `INSERT INTO catalogue (name, title, words, facets, summary, published_at, updated_at, living, spread)
			`+rowsOf(len(rows), columns)+` ON CONFLICT (name) DO UPDATE SET title = excluded.title, words = excluded.words,
				facets = excluded.facets, summary = excluded.summary, published_at = excluded.published_at,
				updated_at = excluded.updated_at, living = excluded.living`, args...)
	}
	if err == nil && s.sql.indexParts != nil {
		err = s.sql.indexParts(ctx, s.db, tx, rows)
	}
	if p.More {
		at, _ := slices.BinarySearch(names, p.Records[len(p.Records)-1].Name.String())
		left = names[at+1:]
	}
	return left, err
}

// indexedBytes is the size of the documents that Index reads at most before the last one.
const indexedBytes = 4 << 20

// ofNames returns a condition for versions with one of the names, which are its arguments.
func (s catalogueStore) ofNames(and string, names []string) string {
	return and + " AND v.name IN (?" + strings.Repeat(", ?", len(names)-1) + ")"
}

// catalogueRow is the row of a server.
type catalogueRow struct {
	registry.Release
	registry.Summary

	title, words string // in lower case
}

func newCatalogueRow(r registry.Record, d tools.Digest, o registry.Owner) catalogueRow {
	s := registry.SummaryOf(r)
	s.Facets = append(append(s.Facets, d.Facets()...), o.Facet())
	return catalogueRow{
		r.Release, s, strings.ToLower(s.Title), strings.ToLower(r.Name.String()+"\n"+s.Title+"\n"+s.Description) + d.Words,
	}
}

func (r *catalogueRow) columns() []any {
	return []any{
		r.Name.String(), r.title, r.words, facetText(r.Facets), r.Title + "\n" + r.Description,
		database.NewInstant(r.PublishedAt), database.NewInstant(r.UpdatedAt), r.Status != registry.StatusDeleted,
		int64(crc32.ChecksumIEEE([]byte(r.Name.String()))),
	}
}

// facetText returns the facets as the column has them. Other spaces than those between them are
// underscores.
func facetText(all []registry.Facet) string {
	var text strings.Builder
	for _, f := range all {
		text.WriteString(" " + strings.Join(strings.Fields(string(f)), "_") + " ")
	}
	return text.String()
}

// foundRow is what a search reads of a server to sort it.
type foundRow struct {
	name, title        string
	updated, published int64
	match              registry.Match
}

// Find implements registrystore.Catalogue. It takes the servers from the index of parts if that has
// few, and otherwise the first ones in their order, of which many match.
func (s catalogueStore) Find(ctx context.Context, q registrystore.Search) (registrystore.Finding, error) {
	if len(q.Words) == 0 && len(q.Facets) == 0 {
		return s.browse(ctx, q)
	}
	q.Limit = max(0, min(q.Limit, registrystore.MaxFound-q.Offset))
	many, manyTitles, err := s.estimate(ctx, q)
	if err != nil {
		return registrystore.Finding{}, err
	}
	if many {
		return s.findMany(ctx, q, manyTitles)
	}
	rows, err := s.withParts(ctx, q, partsOf(q, false), condition{}, maxSorted)
	if err != nil {
		return registrystore.Finding{}, err
	}
	if len(rows) > maxSorted {
		return s.findMany(ctx, q, manyTitles)
	}
	sortFound(rows, q)
	total := min(len(rows), registrystore.MaxFound)
	return s.finding(ctx, cutPage(rows[:total], q), total, total < len(rows))
}

// Count implements registrystore.Catalogue.
func (s catalogueStore) Count(ctx context.Context, q registrystore.Search) (map[registry.Facet]int, error) {
	c, most := s.conditions(q), registrystore.MaxCounted
	find := database.Query{Text: "SELECT c.facets FROM catalogue AS c" + c.where(), Args: c.args}
	narrow := len(q.Words) > 0 || len(q.Facets) > 0
	if narrow {
		many, _, err := s.estimate(ctx, q)
		if err != nil {
			return nil, err
		}
		if narrow = !many; narrow {
			c, most = s.sql.withParts(partsOf(q, false)).also(c), maxSorted
			find = database.Query{Text: "SELECT c.facets FROM " + c.text, Args: c.args}
		}
	}
	if size, err := s.currentSize(ctx); err != nil || !narrow && size > registrystore.MaxCounted {
		return nil, err
	}
	find.Text, find.Args = find.Text+" LIMIT CAST(? AS bigint)", append(slices.Clip(find.Args), most+1)
	rows, err := database.CollectAll(ctx, s.db, find, database.ScanText[string])
	if err != nil || len(rows) > most {
		return nil, err
	}
	counts := map[registry.Facet]int{}
	for _, row := range rows {
		for text := range strings.FieldsSeq(row) {
			if f := registry.Facet(text); f.Value(registry.FacetCalled) == "" {
				counts[f]++
			}
		}
	}
	return counts, nil
}

// maxSorted is how many servers of the index of parts are read and sorted as a whole. Up to that many,
// this takes less time than to read servers in their order until enough of them match.
const maxSorted = 2000

func cutPage(rows []foundRow, q registrystore.Search) []foundRow {
	begin := min(q.Offset, len(rows))
	return rows[begin:min(begin+q.Limit, len(rows))]
}

// findMany returns a page of a search that finds more than MaxFound servers; manyTitles if the
// titles of as many have all words.
func (s catalogueStore) findMany(
	ctx context.Context, q registrystore.Search, manyTitles bool,
) (registrystore.Finding, error) {
	if q.Order != registrystore.ByFit || len(q.Words) == 0 {
		rows, err := s.inOrder(ctx, q, condition{}, q.Offset, q.Limit)
		if err != nil {
			return registrystore.Finding{}, err
		}
		return s.finding(ctx, rows, registrystore.MaxFound, true)
	}
	best, err := s.best(ctx, q, manyTitles)
	if err != nil {
		return registrystore.Finding{}, err
	}
	if upTo := q.Offset + q.Limit; len(best) < upTo {
		rest, err := s.inOrder(ctx, q, condition{}, 0, upTo+len(best))
		if err != nil {
			return registrystore.Finding{}, err
		}
		best = append(best, rest...)
	}
	sortFound(best, q)
	best = slices.CompactFunc(best, func(a, b foundRow) bool { return a.name == b.name })
	return s.finding(ctx, cutPage(best, q), registrystore.MaxFound, true)
}

// best returns the servers whose titles, names or beginnings of names match, at least the first ones
// up to the end of the page. Some may be there twice.
func (s catalogueStore) best(ctx context.Context, q registrystore.Search, manyTitles bool) ([]foundRow, error) {
	var titled []foundRow
	var err error
	if !manyTitles {
		titled, err = s.withParts(ctx, q, partsOf(q, true), s.titleHas(q.Words), registrystore.MaxFound)
	}
	if manyTitles || len(titled) > registrystore.MaxFound {
		titled, err = s.inOrder(ctx, q, s.titleHas(q.Words), 0, q.Offset+q.Limit)
	}
	if err != nil || len(q.Words) > 1 {
		return titled, err
	}
	named, err := s.named(ctx, q)
	if err != nil {
		return nil, err
	}
	// Those that have a word like io.github are next to each other, and not at the beginning.
	first := condition{"c.name >= ? AND c.name < ?", []any{q.Words[0], q.Words[0] + afterNames}}
	begins, err := s.inOrder(ctx, q, first, 0, q.Offset+q.Limit)
	return slices.Concat(titled, named, begins), err
}

// afterNames is after all characters of names.
const afterNames = "~"

// named returns the servers whose names are the only word of a search (registry.MatchesName).
func (s catalogueStore) named(ctx context.Context, q registrystore.Search) ([]foundRow, error) {
	if strings.Contains(q.Words[0], "/") {
		return s.inOrder(ctx, q, condition{"c.name = ?", []any{q.Words[0]}}, 0, 1)
	}
	q.Facets = append(slices.Clip(q.Facets), registry.NewFacet(registry.FacetCalled, q.Words[0]))
	called := partsOf(registrystore.Search{Facets: q.Facets}, false)
	rows, err := s.withParts(ctx, q, called, condition{}, registrystore.MaxFound)
	if err == nil && len(rows) > registrystore.MaxFound {
		return s.inOrder(ctx, q, condition{}, 0, q.Offset+q.Limit)
	}
	return rows, err
}

// browse returns a page of all servers, or of those in ranges of names.
func (s catalogueStore) browse(ctx context.Context, q registrystore.Search) (registrystore.Finding, error) {
	c, total := s.conditions(q), 0
	count := database.Query{
		Text: "SELECT count(*) FROM (SELECT 1 FROM catalogue AS c" + c.where() + " LIMIT CAST(? AS bigint)) AS c",
		Args: append(slices.Clip(c.args), registrystore.MaxCounted+1),
	}
	if err := s.db.ScanRow(ctx, count, &total); err != nil {
		return registrystore.Finding{}, err
	}
	rows, err := s.inOrder(ctx, q, condition{}, q.Offset, q.Limit)
	if err != nil {
		return registrystore.Finding{}, err
	}
	return s.finding(ctx, rows, min(total, registrystore.MaxCounted), total > registrystore.MaxCounted)
}

// conditions returns the condition of a search for a row of the catalogue, called c.
func (s catalogueStore) conditions(q registrystore.Search) (c condition) {
	if !q.Deleted {
		c = c.and("c.living")
	}
	for _, f := range q.Facets {
		c = c.and(s.sql.contains("c.facets"), facetText([]registry.Facet{f}))
	}
	for _, w := range q.Words {
		c = c.and(s.sql.contains("c.words"), w)
	}
	c = c.also(nameFilter("c.name", q.Names))
	if len(q.Except) > 0 {
		except := nameFilter("c.name", q.Except)
		c = c.and("NOT ("+except.text+")", except.args...)
	}
	return c
}

func (s catalogueStore) titleHas(words []string) (c condition) {
	for _, w := range words {
		c = c.and(s.sql.contains("c.title"), w)
	}
	return c
}

const foundColumns = "c.name, c.title, c.updated_at, c.published_at"

// withParts returns the servers of a search that have all parts and meet another condition, too, one
// more than most of them at most, in no order.
func (s catalogueStore) withParts(
	ctx context.Context, q registrystore.Search, parts []part, also condition, most int,
) ([]foundRow, error) {
	find := s.sql.withParts(parts).also(s.conditions(q)).also(also)
	text := "SELECT " + foundColumns + " FROM " + find.text + " LIMIT CAST(? AS bigint)"
	return s.readFound(ctx, q, database.Query{Text: text, Args: append(find.args, most+1)})
}

func (s catalogueStore) CountVersions(ctx context.Context, most int) (n int, err error) {
	count := database.Query{
		Text: "SELECT count(*) FROM (SELECT 1 AS one FROM versions LIMIT CAST(? AS bigint)) AS counted", Args: []any{most},
	}
	return n, s.db.ScanRow(ctx, count, &n)
}

// inOrder returns the first servers of a search that meet another condition, too, in the order of
// the search; with ByFit in the order of names.
func (s catalogueStore) inOrder(
	ctx context.Context, q registrystore.Search, also condition, skip, limit int,
) ([]foundRow, error) {
	c := s.conditions(q).also(also)
	order := map[registrystore.Order]string{
		registrystore.ByUpdated: "c.updated_at DESC, c.name", registrystore.ByNewest: "c.published_at DESC, c.name",
	}[q.Order]
	text := "SELECT " + foundColumns + " FROM catalogue AS c" + c.where() + " ORDER BY " + cmp.Or(order, "c.name") +
		" LIMIT CAST(? AS bigint) OFFSET CAST(? AS bigint)"
	return s.readFound(ctx, q, database.Query{Text: text, Args: append(slices.Clip(c.args), limit, skip)})
}

func (s catalogueStore) readFound(
	ctx context.Context, q registrystore.Search, find database.Query,
) ([]foundRow, error) {
	return database.CollectAll(ctx, s.db, find, func(row *sql.Rows) (r foundRow, err error) {
		var updated, published database.Instant
		if err = row.Scan(&r.name, &r.title, &updated, &published); err != nil {
			return r, err
		}
		r.updated, r.published = updated.UnixMicro(), published.UnixMicro()
		r.match = registry.MatchOf(r.name, r.title, q.Words)
		return r, nil
	})
}

// sortFound sorts rows in the order of a search.
func sortFound(rows []foundRow, q registrystore.Search) {
	slices.SortFunc(rows, func(a, b foundRow) int {
		first := 0
		switch q.Order {
		case registrystore.ByFit:
			first = cmp.Compare(a.match, b.match)
		case registrystore.ByUpdated:
			first = cmp.Compare(b.updated, a.updated)
		case registrystore.ByNewest:
			first = cmp.Compare(b.published, a.published)
		}
		return cmp.Or(first, strings.Compare(a.name, b.name))
	})
}

// finding returns the result with the servers of the rows.
func (s catalogueStore) finding(
	ctx context.Context, rows []foundRow, total int, more bool,
) (registrystore.Finding, error) {
	f := registrystore.Finding{Total: total, More: more}
	if len(rows) == 0 {
		return f, nil
	}
	names := each.Map(rows, func(r foundRow) string { return r.name })
	found, err := database.CollectAll(ctx, s.db, database.Query{
		Text: "SELECT c.summary, c.facets, coalesce(r.decided_by, ''), r.decided_at, " + factsOfVersion +
			` FROM catalogue AS c JOIN versions AS v ON v.name = c.name LEFT JOIN reviews AS r ON r.id = (
				SELECT a.id FROM reviews AS a WHERE a.name = v.name AND a.version = v.version
				AND a.state = 'approved' AND a.part = '' AND a.decided_by <> '' ORDER BY a.decided_at DESC LIMIT 1) WHERE ` +
			s.ofNames("v.is_latest", names),
		Args: anyOf(names),
	}, scanFoundServer)
	slices.SortFunc(found, func(a, b registrystore.FoundServer) int {
		return cmp.Compare(slices.Index(names, a.Name.String()), slices.Index(names, b.Name.String()))
	})
	f.Servers = found
	return f, err
}

func scanFoundServer(row *sql.Rows) (f registrystore.FoundServer, err error) {
	var summary, facets, facts string
	if err = row.Scan(&summary, &facets, &f.ApprovedBy, database.TimeInto(&f.ApprovedAt), &facts); err != nil {
		return f, err
	}
	f.Title, f.Description, _ = strings.Cut(summary, "\n")
	for _, text := range strings.Fields(facets) {
		f.Facets = append(f.Facets, registry.Facet(text))
	}
	f.Release, err = parseFacts(facts)
	return f, err
}
