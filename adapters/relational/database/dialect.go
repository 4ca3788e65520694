package database

import (
	"context"
	"io/fs"
	"time"

	"github.com/uptrace/bun"
)

// Dialect is everything that differs between the databases. The package that opens a database
// provides it.
type Dialect struct {
	Syntax     Syntax
	Migrations Migrations
	// Classify returns the class of a driver's error.
	Classify func(err error) Class
	// CallTimeout limits a call as a whole: the wait for a connection, the statements and their
	// commit. 0 means no limit. It does not apply to work that is marked as long
	// (ports/transaction): LongBegin, if it is not empty, is the first statement of its
	// transactions and sets the limit of statements for this work.
	CallTimeout time.Duration
	LongBegin   string
	// ExclusiveBegin, if it is not empty, is the first statement of a transaction of
	// transaction.Exclusive, after LongBegin. A dialect with one writer at a time leaves it empty.
	ExclusiveBegin string
	// WriteWait limits how long a transaction waits for its turn to write, if the database has one
	// writer at a time. Long work waits a multiple of it. 0 means no limit.
	WriteWait time.Duration
	// Breaker refuses calls while the database is away. It is nil if the database cannot be away.
	Breaker *Breaker
	// WriteProbe returns a statement that fails if the database cannot be written. It is optional.
	WriteProbe func() string
	// HasRoom reports whether there is room for a larger change than that of WriteProbe. It is optional,
	// and called only after a change has failed.
	HasRoom func() bool
	// DataVersion returns a number that is another one after each commit of other connections than
	// the one that it reads it on. It is nil if the database lacks it.
	DataVersion func(ctx context.Context) (int64, error)
	// Listen calls notify with the text of each notification of a channel, and with an empty text
	// when notifications may have been lost, until ctx ends. It is nil if the database sends no
	// notifications.
	Listen func(ctx context.Context, channel string, notify func(text string))
	// Instances selects the names of the processes of the service that listen, each with its version,
	// host and number separated by spaces, and since when they do. It is empty if the database does
	// not know them.
	Instances string
}

// Class is what a driver's error means for the caller.
type Class uint8

// The classes of errors.
const (
	Unknown    Class = iota // any other error: a defect
	Taken                   // a unique constraint does not allow the change
	Away                    // the database answered that it cannot do this now
	Crowded                 // the server has no connection left for this process
	Lost                    // there is no connection, or no answer arrived on it
	Unwritable              // the database can be read but not written: no space, or a standby
	Retrying                // rolled back in favour of another transaction; may be run again
	Refused                 // the database cannot store the text, for example because it is not UTF-8
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
