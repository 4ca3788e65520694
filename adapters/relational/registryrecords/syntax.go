package registryrecords

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// syntax is what differs between the databases in the queries of the registry's tables. Its texts
// call the table versions v.
type syntax struct {
	// plansByText is true if the database plans a query by its text alone, whatever its arguments
	// are.
	plansByText bool
	// fetchesFirst is true if the database fetches a row before it compares the columns that the
	// index has, unless the query reads nothing else.
	fetchesFirst bool
	// lockServer are the statements that create the row of the server ?0, if it does not exist, and
	// lock it.
	lockServer string
	// activeLatest is the condition that a version is the latest and is not deleted. It has the
	// words of the index of these versions, and other words than the index of all latest versions,
	// so that the database chooses the first.
	activeLatest string
	updatedAfter string // condition that a row, found by another index, was updated after the argument
	nameMatches  string // condition that a name matches the argument, a pattern of LIKE, in upper or lower case
	documentSize string // expression of the number of bytes of a document
	rowID        string // column by which a row is found without an index
	withRowID    string // condition that the row id is one of those that the query between its two parts, at %, selects

	// selectVersions returns the query that reads the versions of q, whose text begins after WHERE.
	// If there is a limit of rows, q selects one row more.
	selectVersions func(q database.Query, limit pageLimit) database.Query
	// collectVersions returns the records of the rows of that query up to the limit, and whether
	// there are more.
	collectVersions versionCollector
	// updateStates returns the statements that store everything but the documents of versions.
	updateStates func(releases []registry.Release) []statement
	unique       uniqueErrors

	// position is the query of the position of now, of accessstore.Servers.Changed: where it is good, and
	// a place there. changedAfter selects the rows of server_changes, called c, after a place.
	position, changedAfter string
	// newNames is the query of the next names of servers in the order of their ids: the greatest
	// id, the number of names, and the names, each but the first after a newline. Its arguments are
	// the id after which they begin and the maximum number of names. It is empty if a server may be
	// stored after one with a greater id.
	newNames string
	// namesOf is the subquery that selects the names of the argument, a JSON array. It is empty if
	// newNames is.
	namesOf string
	// namesWith returns the FROM and WHERE clauses of a selection of the index of the parts of
	// names: the rows, called servers, of the names that contain a text and are not before another
	// name. The pattern is the text as a pattern of LIKE. It is nil if newNames is not empty.
	namesWith func(text, pattern, notBefore string) condition

	passLocked string                     // clause after which rows that another transaction has locked are left out
	contains   func(column string) string // condition that a column contains the argument
	// withParts returns the FROM and WHERE clauses of the rows of the catalogue, called c, that have
	// all parts.
	withParts func(all []part) condition
	// indexParts puts the parts of servers into the index. It is nil if the database does it.
	indexParts func(ctx context.Context, db *database.DB, tx bun.IDB, servers []catalogueRow) error
}

// syntaxOf returns the syntax for a database.
func syntaxOf(db *database.DB) *syntax {
	if db.Kind() == dialect.PG {
		return &postgresSyntax
	}
	return &sqliteSyntax
}

// uniqueErrors are the texts by which a driver's error names the broken constraint of the table
// versions.
type uniqueErrors struct {
	version     string // name and version
	publication string // name and publication time
	latest      string // one latest version for each name
}

// statement is a statement that must change a known number of rows.
type statement struct {
	text string
	args []any
	rows int64
}

// condition is a condition, or another part of a query, with its arguments.
type condition struct {
	text string
	args []any
}

// and returns the conjunction of the condition and another one.
func (c condition) and(text string, args ...any) condition { return c.also(condition{text, args}) }

// also returns the conjunction of both conditions. An empty condition is true.
func (c condition) also(other condition) condition {
	switch {
	case other.text == "":
		return c
	case c.text == "":
		return other
	}
	return condition{c.text + " AND " + other.text, append(slices.Clip(c.args), other.args...)}
}

// where returns the WHERE clause of a query, which is empty for an empty condition.
func (c condition) where() string {
	if c.text == "" {
		return ""
	}
	return " WHERE " + c.text
}

// ofRows returns the condition that the row id is one of those that a query selects. It leaves no
// plan but to run the query first, and once.
func (x *syntax) ofRows(query condition) condition {
	before, after, _ := strings.Cut(x.withRowID, "%")
	return condition{before + query.text + after, query.args}
}

// nextRows returns the condition for the first rows of a list that meet a filter, at most limit of
// them. An index has the rows of the list in this order, and the columns that the filter compares.
func (x *syntax) nextRows(list, filter condition, order string, limit int) condition {
	all := list.also(filter)
	if !x.fetchesFirst {
		return all
	}
	return x.ofRows(condition{
		"SELECT (SELECT f." + x.rowID + " FROM versions AS f WHERE f.name = k.name AND f.version = k.version) FROM (" +
			"SELECT v.name, v.version FROM versions AS v WHERE " + all.text + order + " LIMIT CAST(? AS bigint)) AS k",
		append(slices.Clip(all.args), limit),
	})
}

// firstRows returns the condition for the first rows that meet one of the conditions, at least
// limit of them if there are as many. An index has the order for the rows of each condition.
func (x *syntax) firstRows(lists []condition, order string, limit int) condition {
	var args []any
	parts := make([]string, 0, len(lists))
	for i, c := range lists {
		parts = append(parts, "SELECT id FROM (SELECT v."+x.rowID+" AS id FROM versions AS v WHERE "+c.text+order+
			" LIMIT CAST(? AS bigint)) AS part"+strconv.Itoa(i))
		args = append(append(args, c.args...), limit)
	}
	return x.ofRows(condition{strings.Join(parts, " UNION ALL "), args})
}

// updatedRows returns the condition that a row was updated after a time. The caller knows that
// fewer rows than limit were.
func (x *syntax) updatedRows(after any, limit int) condition {
	return x.ofRows(condition{
		"SELECT " + x.rowID + " FROM versions WHERE updated_at > ? ORDER BY updated_at LIMIT CAST(? AS bigint)", []any{
			after, limit,
		},
	})
}
