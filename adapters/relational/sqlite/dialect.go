package sqlite

import (
	"embed"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
)

//go:embed migrations
var migrations embed.FS

// syntax is the SQL that all stores use. SQLite has one writer at a time, so it needs no locks of
// rows, and migrations no lock of their own.
var syntax = database.Syntax{
	TimeType:     "integer",
	CurrentTime:  "CAST(unixepoch('subsec') * 1000000 AS integer)",
	TimeArgument: func(t time.Time) any { return t.UnixMicro() },
	Placeholders: func(query string) string { return query },
}

func migrationsOf(c Config) database.Migrations {
	return database.Migrations{
		Files:     migrations,
		Table:     "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'migrations'",
		RetryTime: patience * c.BusyTimeout,
	}
}
