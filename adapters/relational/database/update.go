package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"
)

// UpdateSchema applies the missing migrations and logs their names. If migrate is false
// (MIGRATE_ON_START), it applies no migration, and returns an error if one is missing. It returns
// the errors of Migrate.
func (d *DB) UpdateSchema(ctx context.Context, migrate bool, log *logrus.Entry) error {
	if !migrate {
		return d.checkSchema(ctx)
	}
	applied, err := d.Migrate(ctx)
	if len(applied) > 0 { // also those before one that failed
		log.WithField("migrations", applied).Info("migrations are applied to the database")
	}
	return err
}

// checkSchema returns an error if a migration is missing.
func (d *DB) checkSchema(ctx context.Context) error {
	pending, err := d.Pending(ctx)
	if err != nil {
		return err
	}
	switch n := len(pending); n {
	case 0:
		return nil
	case 1:
		return errors.New("a migration is missing and MIGRATE_ON_START is false: run 'tollgate migrate'")
	default:
		return fmt.Errorf("%d migrations are missing and MIGRATE_ON_START is false: run 'tollgate migrate'", n)
	}
}
