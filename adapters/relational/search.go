package relational

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// Bounds of what a page reads that no index has in the order of the page: a search, or what was updated since a time.
const (
	nearRows = 128    // in the order of the page, before another index is looked at
	few      = 5_000  // by another index, and sorted
	farRows  = 10_000 // in the order of the page, where the other index has more than few
)

// filteredPage returns the page of a query that selects some of the rows that an index has in order. Nearly all of these are common, so
// that the next rows fill the page, or rare, so that another index has few of them. What is left ends its page after farRows.
func (s *Servers) filteredPage(ctx context.Context, q registrystore.Query) (registrystore.Page, error) {
	p, err := s.nextRows(ctx, q, s.near)
	if err != nil || p.EndName == "" {
		return p, err
	}
	lookUp := s.searchPage
	if !q.UpdatedSince.IsZero() {
		lookUp = s.updatedPage
	}
	if p, ok, err := lookUp(ctx, q); err != nil || ok {
		return p, err
	}
	return s.nextRows(ctx, q, farRows)
}

// nextRows returns the page of what the query selects of the next rows in order. Where there are more rows than those, and they do
// not fill the page, it has an end of its own.
func (s *Servers) nextRows(ctx context.Context, q registrystore.Query, rows int) (registrystore.Page, error) {
	name, version, err := s.keyBehind(ctx, q, rows)
	if err != nil {
		return registrystore.Page{}, err
	}
	c := s.rowFilter(q)
	if name != "" {
		c = c.andCondition("(v.name, v.version) <= (?, ?)", name, version)
	}
	if s.db.dialect.Name == PostgreSQL {
		// So it compares names in the index. It would fetch each row before, SQLite does not.
		all := s.listCondition(q)
		c = condition{
			"(v.name, v.version) IN (SELECT v.name, v.version FROM versions AS v WHERE " + all.text + " AND " + c.text + listOrder(q) + " LIMIT CAST(? AS bigint))",
			append(append(all.args, c.args...), q.Limit+1),
		}
	}
	p, err := s.listPage(ctx, q, c)
	if err == nil && !p.More && name != "" {
		p.More, p.EndName, p.EndVersion = true, name, version
	}
	return p, err
}

// keyBehind returns the name and version of the row behind some rows in order; empty = there are no more.
func (s *Servers) keyBehind(ctx context.Context, q registrystore.Query, rows int) (name, version string, err error) {
	all := s.listCondition(q)
	text := "SELECT v.name, v.version FROM versions AS v WHERE " + all.text + listOrder(q) + " LIMIT 1 OFFSET CAST(? AS bigint)"
	key, err := collected(ctx, s.db, query{text, append(all.args, rows), s.plansByText()}, func(rows *sql.Rows) (key [2]string, err error) {
		for rows.Next() {
			if err := rows.Scan(&key[0], &key[1]); err != nil {
				return key, err
			}
		}
		return key, nil
	})
	return key[0], key[1], err
}

// rowFilter returns what is compared with each row: the name with the text, its letters in any case, and the time.
func (s *Servers) rowFilter(q registrystore.Query) (c condition) {
	if q.Search != "" {
		c = c.andCondition(s.likeCondition("v.name"), likePattern(q))
	}
	if !q.UpdatedSince.IsZero() {
		column := "v.updated_at"
		if s.db.dialect.Name == SQLite {
			column = "+v.updated_at" // the sign keeps the index of updates out
		}
		c = c.andCondition(column+" > ?", s.db.timeArgument(q.UpdatedSince))
	}
	return c
}

// likeCondition returns the condition that a column has a pattern, the argument, in any case.
func (s *Servers) likeCondition(column string) string {
	if s.db.dialect.Name == PostgreSQL {
		return "lower(" + column + `) LIKE lower(? COLLATE "C") ESCAPE '\'`
	}
	return column + ` LIKE ? ESCAPE '\'`
}

func likePattern(q registrystore.Query) string { return "%" + likeEscaper.Replace(q.Search) + "%" }

// likeEscaper makes the signs of LIKE plain.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// updatedPage returns the page of what was updated since a time, and true, where that are few rows.
func (s *Servers) updatedPage(ctx context.Context, q registrystore.Query) (registrystore.Page, bool, error) {
	moment := s.db.timeArgument(q.UpdatedSince)
	if n, err := s.upToFew(ctx, condition{"FROM versions WHERE updated_at > ?", []any{moment}}); err != nil || n > few {
		return registrystore.Page{}, false, err
	}
	c := condition{"v.rowid IN (SELECT rowid FROM versions WHERE updated_at > ?)", []any{moment}}
	if s.db.dialect.Name == PostgreSQL {
		// The order and the bound, of more than there are, leave no plan but that by the index of updates.
		c = condition{"v.ctid = ANY (ARRAY(SELECT ctid FROM versions WHERE updated_at > ? ORDER BY updated_at LIMIT CAST(? AS bigint)))", []any{moment, 2 * few}}
	}
	if q.Search != "" {
		c = c.andCondition(s.likeCondition("v.name"), likePattern(q))
	}
	p, err := s.listPage(ctx, q, c)
	return p, true, err
}

// searchPage returns the page of a search, and true, where the index of the parts of names finds few.
func (s *Servers) searchPage(ctx context.Context, q registrystore.Query) (registrystore.Page, bool, error) {
	if strings.Contains(q.Search, endOfName) {
		return registrystore.Page{}, true, nil
	}
	counted, names := s.searchCandidates(q)
	most, err := s.upToFew(ctx, counted)
	if err != nil || most > few {
		return registrystore.Page{}, false, err
	}
	ofName := "v.name IN"
	if q.LatestOnly {
		ofName = "v.is_latest AND v.name IN" // by the index that has one row of a name
	}
	first := func(n int) (registrystore.Page, error) {
		return s.listPage(ctx, q, condition{
			ofName + " (SELECT name FROM (SELECT servers.name AS name " + names.text + " ORDER BY servers.name LIMIT CAST(? AS bigint)) AS found)",
			append(slices.Clip(names.args), n),
		})
	}
	// A page needs no more names than it has rows, as long as each has one. Its last row is the one that reports whether there are more.
	if enough := q.Limit + 2; enough < most {
		if p, err := first(enough); err != nil || p.More {
			return p, true, err
		}
	}
	p, err := first(math.MaxInt32)
	return p, true, err
}

// endOfName is what SQLite's index has behind each name, and no name has in it.
const endOfName = "\x01"

// minTrigram is the shortest text that is a part of names; a shorter one is the beginning of parts.
const minTrigram = 3

// searchCandidates returns FROM and WHERE of what the index finds that is asked how much there is, and of the names with the text in them
// that are not before the page.
func (s *Servers) searchCandidates(q registrystore.Query) (counted, names condition) {
	if s.db.dialect.Name == PostgreSQL {
		// What the index finds comes first by itself: the function takes too long to be called for the rows of another one.
		names = condition{
			`FROM (WITH found AS MATERIALIZED (SELECT name FROM servers WHERE server_parts(name) @@ CAST(? AS tsquery)) SELECT name FROM found) AS servers
			WHERE ` + s.likeCondition("servers.name") + " AND servers.name >= ?",
			[]any{partsQuery(q.Search), likePattern(q), q.AfterName},
		}
		return names, names
	}
	if utf8.RuneCountInString(q.Search) < minTrigram {
		from := strings.ToLower(q.Search)
		counted = condition{"FROM server_trigrams WHERE term >= ? AND term < ?", []any{from, from + "\x7f"}}
		return counted, condition{
			"FROM servers WHERE id IN (SELECT doc " + counted.text + ") AND servers.name >= ?", append(slices.Clip(counted.args), q.AfterName),
		}
	}
	phrase := `"` + strings.ReplaceAll(q.Search, `"`, `""`) + `"`
	// The index finds the names that have the phrase in them and no others, so none is compared again. A cross join, in SQLite, is one
	// whose order stays as it is written.
	return condition{"FROM server_parts WHERE server_parts MATCH ?", []any{phrase}}, condition{
		"FROM server_parts CROSS JOIN servers ON servers.id = server_parts.rowid WHERE server_parts MATCH ? AND servers.name >= ?", []any{phrase, q.AfterName},
	}
}

// partsQuery returns the text search query of PostgreSQL for names that have all parts of a text.
func partsQuery(text string) string {
	all := []rune(strings.ToLower(text))
	quote := func(part []rune) string { return "'" + partEscaper.Replace(string(part)) + "'" }
	if len(all) < minTrigram {
		return quote(all) + ":*"
	}
	parts := make([]string, 0, len(all))
	for i := range len(all) - minTrigram + 1 {
		parts = append(parts, quote(all[i:i+minTrigram]))
	}
	return strings.Join(parts, " & ")
}

var partEscaper = strings.NewReplacer(`'`, `''`, `\`, `\\`)

// upToFew returns how many rows there are, or few and one where there are more than few.
func (s *Servers) upToFew(ctx context.Context, rows condition) (int, error) {
	text := "SELECT count(*) FROM (SELECT 1 " + rows.text + " LIMIT CAST(? AS bigint)) AS found"
	return s.db.queryNumber(ctx, query{text, append(slices.Clip(rows.args), few+1), s.plansByText()})
}
