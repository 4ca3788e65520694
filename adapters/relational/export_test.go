package relational

import "context"

// MigrateTo applies the first n migrations, for tests of databases that an
// older program left.
func (d *DB) MigrateTo(ctx context.Context, n int) ([]string, error) { return d.migrateTo(ctx, n) }

// Execute runs a statement, for tests of databases that someone else changed.
func (d *DB) Execute(ctx context.Context, statement string) error {
	_, err := d.writer.ExecContext(ctx, statement)
	return err
}
