package database

import (
	"database/sql"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tollgate-dev/tollgate/core/registry"
)

// Syntax is the SQL that all stores use and that differs between the databases.
type Syntax struct {
	TimeType     string                    // type of the columns that hold an Instant
	CurrentTime  string                    // expression of the current time as an Instant
	TimeArgument func(t time.Time) any     // converts a time to an argument of a query that Bun does not format
	Placeholders func(query string) string // replaces the question marks of a query by the placeholders of the driver
	RowLock      string                    // what follows FOR in a query that locks its rows; empty: the database has one writer at a time
}

// Migrations are the migrations of a database, and how it applies them.
type Migrations struct {
	Files fs.FS    // folder migrations, with one SQL file for each migration; the names of the files are their order
	Table string   // query that counts the tables with the name migrations
	Lock  []string // statements at the start of a migration that keep other migrations out until its transaction ends
	// Open opens a pool for migrations, whose statements may run for minutes, and returns it with
	// the function that closes it. If it is nil, migrations use the write pool.
	Open func() (*bun.DB, func())
	// RetryTime is how long Migrate tries again while the database is busy.
	RetryTime time.Duration
}

// RegistrySyntax is the SQL of the registry's tables that differs between the databases. Its texts
// call the table versions v.
type RegistrySyntax struct {
	// PlansByText is true if the database plans a query by its text alone, whatever its arguments
	// are.
	PlansByText bool
	// LockServer are the statements that create the row of the server ?0, if it does not exist, and
	// lock it.
	LockServer string
	// ActiveLatest is the condition that a version is the latest and is not deleted. It has the
	// words of the index of these versions, and other words than the index of all latest versions,
	// so that the database chooses the first.
	ActiveLatest string
	UpdatedAfter string // condition that a row, found by another index, was updated after the argument
	NameMatches  string // condition that a name matches the argument, a pattern of LIKE, in upper or lower case
	DocumentSize string // expression of the number of bytes of a document

	Unique   UniqueErrors
	Find     Finder
	Versions VersionEncoding
	// NewNames is the query of the next names of servers in the order of their ids: the greatest
	// id, the number of names, and the names, each but the first after a newline. Its arguments are
	// the id after which they begin and the maximum number of names. It is empty if a server may be
	// stored after one with a greater id.
	NewNames string
	// NamesOf is the subquery that selects the names of the argument, a JSON array. It is empty if
	// NewNames is.
	NamesOf string
	// NamesWith returns the FROM and WHERE clauses of a selection of the index of the parts of
	// names: the rows, called servers, of the names that contain a text and are not before another
	// name. The pattern is the text as a pattern of LIKE. It is nil if NewNames is not empty.
	NamesWith func(text, pattern, notBefore string) Condition
	// UpdateStates returns the statements that store everything but the documents of versions.
	UpdateStates func(releases []registry.Release) []Statement
}

// UniqueErrors are the texts by which a driver's error names the broken constraint of the table
// versions.
type UniqueErrors struct {
	Version     string // name and version
	Publication string // name and publication time
	Latest      string // one latest version for each name
}

// Finder returns conditions that make the database use the intended index.
type Finder interface {
	// NextRows returns the condition that selects the first rows that meet both conditions, at most
	// limit of them. The order is the ORDER BY clause of the list, which an index has for the rows
	// that meet the condition list.
	NextRows(list, filter Condition, order string, limit int) Condition
	// FirstRows returns the condition that selects the first rows that meet one of the conditions,
	// at least limit of them if there are as many. The order is as in NextRows, and an index has it
	// for the rows that meet any one of the conditions.
	FirstRows(lists []Condition, order string, limit int) Condition
	// UpdatedRows returns the condition that a row was updated after a time (Syntax.TimeArgument).
	// The caller knows that fewer rows than limit were.
	UpdatedRows(after any, limit int) Condition
}

// Limit limits the versions that a query reads.
type Limit struct {
	Rows  int // most records; 0 means no limit
	Bytes int // the records end with the one whose document reaches this number of bytes in total
}

// VersionEncoding reads versions in the way that costs the driver of the database least
// (docs/adr/0010-lists-are-read-as-packed-text.md).
type VersionEncoding interface {
	// Select returns the query that reads the versions of q, whose text begins after WHERE. If there
	// is a limit of rows, q selects one row more.
	Select(q Query, limit Limit) Query
	// Collect returns the records of the rows of such a query up to the limit, and whether there are
	// more. parse reads the column facts.
	Collect(rows *sql.Rows, limit Limit, parse FactsParser) (records []registry.Record, more bool, err error)
}

// FactsOfVersion selects the facts of a version from the table versions AS v: the column facts, and
// before it for a mirrored version "@", the column origin and a space. No name of a server begins
// with that.
const FactsOfVersion = "CASE WHEN v.origin IS NULL THEN v.facts ELSE '@' || v.origin || ' ' || v.facts END"

// FactsParser parses what FactsOfVersion selects.
type FactsParser func(facts string) (registry.Release, error)

// Condition is a condition, or another part of a query, with its arguments.
type Condition struct {
	Text string
	Args []any
}

// And returns the conjunction of the condition and another one. An empty condition is true.
func (c Condition) And(text string, args ...any) Condition {
	if c.Text != "" {
		text = c.Text + " AND " + text
	}
	return Condition{text, append(slices.Clip(c.Args), args...)}
}

// FirstOfEach returns the query of a column of the first rows that meet each of the conditions, at
// most limit of them for each.
func FirstOfEach(column string, lists []Condition, order string, limit int) Condition {
	var all Condition
	texts := make([]string, 0, len(lists))
	for i, c := range lists {
		texts = append(texts, "SELECT id FROM (SELECT v."+column+" AS id FROM versions AS v WHERE "+c.Text+order+" LIMIT CAST(? AS bigint)) AS part"+strconv.Itoa(i))
		all.Args = append(append(all.Args, c.Args...), limit)
	}
	all.Text = strings.Join(texts, " UNION ALL ")
	return all
}

// Statement is a statement that must change a known number of rows.
type Statement struct {
	Text string
	Args []any
	Rows int64
}
