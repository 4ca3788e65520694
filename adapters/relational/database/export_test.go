package database

import (
	"context"
	"time"
)

// MigrateTo applies the first n migrations, for tests of databases of older versions.
func (d *DB) MigrateTo(ctx context.Context, n int) ([]string, error) { return d.migrateTo(ctx, n) }

// ProbeAgain makes the next call of Ready try a write.
func (d *DB) ProbeAgain() {
	d.writes.mu.Lock()
	defer d.writes.mu.Unlock()
	d.writes.probed = time.Time{}
}
