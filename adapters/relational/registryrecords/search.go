package registryrecords

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Limits of what a filtered page reads: a page of a search, or of the versions updated since a
// time. No index has these rows in the order of the page.
const (
	nearRows = 128    // rows that are read in the order of the page before another index is used
	fewRows  = 5_000  // rows that are read with another index and sorted
	farRows  = 10_000 // rows that are read in the order of the page if another index has more than fewRows
)

// filteredPage returns a page of a search, of the versions updated since a time, or of those that
// are not deprecated. In most cases the rows are common, and then the next rows in order fill the
// page, or they are rare, and then another index has few of them. In the other cases the page ends
// after farRows, with fewer records than the limit.
func (s *Servers) filteredPage(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	if s.sql.newNames != "" && q.Search != "" && q.UpdatedSince.IsZero() {
		// A page needs no more names than it has rows, if each name has a row, and one more that
		// shows whether there are more. Some names may have only deleted versions.
		if p, ok, err := s.pageFromMemory(ctx, q, q.Limit*5/4+2); err != nil || ok {
			return p, err
		}
	}
	next := func(rows int) (registrystore.Page, error) {
		return pageInRanges(q, func(q registrystore.Query) (registrystore.Page, error) {
			return s.nextRows(ctx, q, rows)
		})
	}
	p, err := next(s.nearRows(q))
	if err != nil || p.EndName == "" {
		return p, err
	}
	readByIndex := s.searchPage
	switch {
	case !q.UpdatedSince.IsZero():
		readByIndex = s.updatedPage
	case q.Search == "": // no index has these rows
		return next(farRows)
	}
	if p, ok, err := readByIndex(ctx, q); err != nil || ok {
		return p, err
	}
	return next(farRows)
}

// nearRows returns how many rows are read in the order of the page first. Few versions are
// deprecated, so that these rows fill most pages without them.
func (s *Servers) nearRows(q registrystore.Query) int {
	if q.WithoutDeprecated && s.near > 0 {
		return max(s.near, q.Limit*5/4+2)
	}
	return s.near
}

// nextRows returns the page of the matching rows among the next rows in order. If there are more
// rows than these and the page is not full, the page names its end.
func (s *Servers) nextRows(ctx context.Context, q registrystore.Query, rows int) (registrystore.Page, error) {
	list := s.listCondition(q, rows+1)
	name, version, err := s.keyAfter(ctx, q, list, rows)
	if err != nil {
		return registrystore.Page{}, err
	}
	filter := s.rowFilter(q)
	if name != "" {
		filter = filter.and("(v.name, v.version) <= (?, ?)", name, version)
		if len(q.Names) == 1 {
			q.Names = []registry.NameRange{endingWith(q.Names[0], name)}
			list = s.listCondition(q, rows+1)
		}
	}
	p, err := s.listPage(ctx, q, s.sql.nextRows(list, filter, listOrder(q), q.Limit+1))
	if err == nil && !p.More && name != "" {
		p.More, p.EndName, p.EndVersion = true, name, version
	}
	return p, err
}

// endingWith returns the names of a range up to one of them. SQLite reads the rows of an index up
// to one bound only, and it takes the end of the range rather than the last row.
func endingWith(r registry.NameRange, last string) registry.NameRange {
	return registry.NameRange{From: r.From, Below: last + belowNames}
}

// belowNames is a character that is less than all characters of names.
const belowNames = " "

// keyAfter returns the name and version of the row of a list after a number of rows in order. They
// are empty if there are not more rows.
func (s *Servers) keyAfter(
	ctx context.Context, q registrystore.Query, list condition, rows int,
) (name, version string, err error) {
	text := "SELECT v.name, v.version FROM versions AS v WHERE " + list.text + listOrder(q) +
		" LIMIT 1 OFFSET CAST(? AS bigint)"
	find := database.Query{Text: text, Args: append(slices.Clip(list.args), rows), Fixed: s.sql.plansByText}
	err = s.db.ScanRow(ctx, find, &name, &version)
	return name, version, err
}

// rowFilter returns the condition that is compared with each row: that its name contains the text,
// in upper or lower case, that it was updated after the time, and that it is not deprecated.
func (s *Servers) rowFilter(q registrystore.Query) (c condition) {
	if q.Search != "" {
		c = c.and(s.sql.nameMatches, likePattern(q))
	}
	if !q.UpdatedSince.IsZero() {
		c = c.and(s.sql.updatedAfter, s.db.TimeArgument(q.UpdatedSince))
	}
	if q.WithoutDeprecated {
		c = c.and(notDeprecated)
	}
	return c
}

// likePattern returns the pattern of LIKE for names that contain the text.
func likePattern(q registrystore.Query) string { return "%" + likeEscaper.Replace(q.Search) + "%" }

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// updatedPage returns the page of the versions updated since a time, and true, if these are few
// rows.
func (s *Servers) updatedPage(ctx context.Context, q registrystore.Query) (registrystore.Page, bool, error) {
	after := s.db.TimeArgument(q.UpdatedSince)
	counted := condition{text: "FROM versions WHERE updated_at > ?", args: []any{after}}
	if n, err := s.countFew(ctx, counted); err != nil || n > fewRows {
		return registrystore.Page{}, false, err
	}
	c := s.sql.updatedRows(after, 2*fewRows)
	if q.Search != "" {
		c = c.and(s.sql.nameMatches, likePattern(q))
	}
	p, err := s.pageInsideRanges(ctx, q, c.also(nameFilter("v.name", q.Names)))
	return p, true, err
}

// pageInsideRanges returns the page of the rows of a list that meet a condition, all of them in the
// ranges of the query.
func (s *Servers) pageInsideRanges(
	ctx context.Context, q registrystore.Query, c condition,
) (registrystore.Page, error) {
	q.Names = nil
	c = s.listCondition(q, 0).also(c)
	if q.WithoutDeprecated {
		c = c.and(notDeprecated)
	}
	return s.listPage(ctx, q, c)
}

// searchPage returns the page of a search, and true, if the index of the parts of names finds few
// names.
func (s *Servers) searchPage(ctx context.Context, q registrystore.Query) (registrystore.Page, bool, error) {
	if s.sql.newNames != "" {
		return s.pageFromMemory(ctx, q, fewRows)
	}
	names := s.sql.namesWith(q.Search, likePattern(q), q.AfterName).also(nameFilter("servers.name", q.Names))
	found, err := s.countFew(ctx, names)
	if err != nil || found > fewRows {
		return registrystore.Page{}, false, err
	}
	// A page needs no more names than it has rows, if each name has a row. The last row shows
	// whether there are more.
	if enough := q.Limit + 2; enough < found {
		if p, err := s.pageOfNames(ctx, q, firstNames(names, enough)); err != nil || p.More {
			return p, true, err
		}
	}
	p, err := s.pageOfNames(ctx, q, firstNames(names, math.MaxInt32))
	return p, true, err
}

// firstNames returns the subquery of the first names of a selection.
func firstNames(names condition, limit int) condition {
	return condition{
		text: "SELECT name FROM (SELECT servers.name AS name " + names.text +
			" ORDER BY servers.name LIMIT CAST(? AS bigint)) AS found",
		args: append(slices.Clip(names.args), limit),
	}
}

// pageOfNames returns the page of the versions of the names that a subquery selects, all of them in
// the ranges of the query.
func (s *Servers) pageOfNames(ctx context.Context, q registrystore.Query, names condition) (registrystore.Page, error) {
	ofName := "v.name IN ("
	if q.LatestOnly {
		ofName = "v.is_latest AND v.name IN (" // with the index that has one row for each name
	}
	return s.pageInsideRanges(ctx, q, condition{ofName + names.text + ")", names.args})
}

// countFew returns how many rows there are, or fewRows and one if there are more than fewRows.
func (s *Servers) countFew(ctx context.Context, rows condition) (n int, err error) {
	text := "SELECT count(*) FROM (SELECT 1 " + rows.text + " LIMIT CAST(? AS bigint)) AS found"
	find := database.Query{Text: text, Args: append(slices.Clip(rows.args), fewRows+1), Fixed: s.sql.plansByText}
	err = s.db.ScanRow(ctx, find, &n)
	return n, err
}
