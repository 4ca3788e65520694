package registryrecords

import (
	"context"
	"database/sql"
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
	if s.sql.NewNames != "" && q.Search != "" && q.UpdatedSince.IsZero() {
		// A page needs no more names than it has rows, if each name has a row, and one more that shows
		// whether there are more. Some names may have only deleted versions.
		if p, ok, err := s.pageFromMemory(ctx, q, q.Limit*5/4+2); err != nil || ok {
			return p, err
		}
	}
	next := func(rows int) (registrystore.Page, error) {
		return pageInRanges(q, func(q registrystore.Query) (registrystore.Page, error) { return s.nextRows(ctx, q, rows) })
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
		filter = filter.And("(v.name, v.version) <= (?, ?)", name, version)
		if len(q.Names) == 1 {
			q.Names = []registry.NameRange{endingWith(q.Names[0], name)}
			list = s.listCondition(q, rows+1)
		}
	}
	if filter.Text != "" {
		filter = s.sql.Find.NextRows(list, filter, listOrder(q), q.Limit+1)
	}
	p, err := s.listPage(ctx, q, list, filter)
	if err == nil && !p.More && name != "" {
		p.More, p.EndName, p.EndVersion = true, name, version
	}
	return p, err
}

// endingWith returns the names of a range up to one of them. SQLite reads the rows of an index up to
// one bound only, and it takes the end of the range rather than the last row.
func endingWith(r registry.NameRange, last string) registry.NameRange {
	return registry.NameRange{From: r.From, Below: last + belowNames}
}

// belowNames is a character that is less than all characters of names.
const belowNames = " "

// keyAfter returns the name and version of the row of a list after a number of rows in order. They
// are empty if there are not more rows.
func (s *Servers) keyAfter(ctx context.Context, q registrystore.Query, list database.Condition, rows int) (name, version string, err error) {
	text := "SELECT v.name, v.version FROM versions AS v WHERE " + list.Text + listOrder(q) + " LIMIT 1 OFFSET CAST(? AS bigint)"
	find := database.Query{Text: text, Args: append(slices.Clip(list.Args), rows), Fixed: s.sql.PlansByText}
	key, err := database.Collect(ctx, s.db, find, func(rows *sql.Rows) (key [2]string, err error) {
		for rows.Next() {
			if err := rows.Scan(&key[0], &key[1]); err != nil {
				return key, err
			}
		}
		return key, nil
	})
	return key[0], key[1], err
}

// rowFilter returns the condition that is compared with each row: that its name contains the text,
// in upper or lower case, that it was updated after the time, and that it is not deprecated.
func (s *Servers) rowFilter(q registrystore.Query) (c database.Condition) {
	if q.Search != "" {
		c = c.And(s.sql.NameMatches, likePattern(q))
	}
	if !q.UpdatedSince.IsZero() {
		c = c.And(s.sql.UpdatedAfter, s.db.TimeArgument(q.UpdatedSince))
	}
	if q.WithoutDeprecated {
		c = c.And(notDeprecated)
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
	counted := database.Condition{Text: "FROM versions WHERE updated_at > ?", Args: []any{after}}
	if n, err := s.countFew(ctx, counted); err != nil || n > fewRows {
		return registrystore.Page{}, false, err
	}
	c := s.sql.Find.UpdatedRows(after, 2*fewRows)
	if q.Search != "" {
		c = c.And(s.sql.NameMatches, likePattern(q))
	}
	if q.Names != nil {
		within := nameFilter("v.name", q.Names)
		c = c.And(within.Text, within.Args...)
	}
	q = outsideRanges(q)
	p, err := s.listPage(ctx, q, s.listCondition(q, 0), c)
	return p, true, err
}

// searchPage returns the page of a search, and true, if the index of the parts of names finds few
// names.
func (s *Servers) searchPage(ctx context.Context, q registrystore.Query) (registrystore.Page, bool, error) {
	if s.sql.NewNames != "" {
		return s.pageFromMemory(ctx, q, fewRows)
	}
	names := s.sql.NamesWith(q.Search, likePattern(q), q.AfterName)
	if q.Names != nil {
		within := nameFilter("servers.name", q.Names)
		names = names.And(within.Text, within.Args...)
	}
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
func firstNames(names database.Condition, limit int) database.Condition {
	return database.Condition{
		Text: "SELECT name FROM (SELECT servers.name AS name " + names.Text + " ORDER BY servers.name LIMIT CAST(? AS bigint)) AS found",
		Args: append(slices.Clip(names.Args), limit),
	}
}

// pageOfNames returns the page of the versions of the names that a subquery selects, all of them in
// the ranges of the query.
func (s *Servers) pageOfNames(ctx context.Context, q registrystore.Query, names database.Condition) (registrystore.Page, error) {
	ofName := "v.name IN ("
	if q.LatestOnly {
		ofName = "v.is_latest AND v.name IN (" // with the index that has one row for each name
	}
	q = outsideRanges(q)
	return s.listPage(ctx, q, s.listCondition(q, 0), database.Condition{Text: ofName + names.Text + ")", Args: names.Args})
}

// countFew returns how many rows there are, or fewRows and one if there are more than fewRows.
func (s *Servers) countFew(ctx context.Context, rows database.Condition) (int, error) {
	text := "SELECT count(*) FROM (SELECT 1 " + rows.Text + " LIMIT CAST(? AS bigint)) AS found"
	return s.db.QueryNumber(ctx, database.Query{Text: text, Args: append(slices.Clip(rows.Args), fewRows+1), Fixed: s.sql.PlansByText})
}
