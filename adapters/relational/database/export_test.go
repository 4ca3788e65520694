package database

import "context"

// MigrateTo applies the first n migrations, for tests of databases of older versions.
func (d *DB) MigrateTo(ctx context.Context, n int) ([]string, error) { return d.migrateTo(ctx, n) }
