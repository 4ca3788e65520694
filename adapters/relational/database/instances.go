package database

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// Instance is a process of the service that is connected to the database.
type Instance struct {
	Version, Process, Host string
	Since                  time.Time // of its connection
}

// Instances returns the processes of the service that listen for changes, those that have been
// connected longest first, and at most 100; empty if the database does not know them.
func (d *DB) Instances(ctx context.Context) ([]Instance, error) {
	if d.dialect.Instances == "" {
		return nil, ctx.Err()
	}
	return CollectAll(ctx, d, Query{Text: d.dialect.Instances, Fixed: true}, func(row *sql.Rows) (i Instance, err error) {
		var name string
		var since Instant
		err = row.Scan(&name, &since)
		rest := ""
		i.Version, rest, _ = strings.Cut(name, " ")
		i.Process, i.Host, _ = strings.Cut(rest, " ")
		i.Since = since.Time
		return i, err
	})
}
