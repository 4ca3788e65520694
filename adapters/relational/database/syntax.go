package database

import (
	"io/fs"
	"time"

	"github.com/uptrace/bun"
)

// Syntax is the SQL that all stores use and that differs between the databases.
type Syntax struct {
	TimeType     string                    // type of the columns that hold an Instant
	CurrentTime  string                    // expression of the current time as an Instant
	TimeArgument func(t time.Time) any     // converts a time to an argument of a query that Bun does not format
	Placeholders func(query string) string // replaces the question marks of a query by the placeholders of the driver
	// what follows FOR in a query that locks its rows; empty: the database has one writer at a time
	RowLock string
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
