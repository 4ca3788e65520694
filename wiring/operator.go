package wiring

import (
	"context"
	"errors"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/catalogue/manage"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/grants"
	"github.com/tollgate-dev/tollgate/core/registry/transfer"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// Operator is what operator commands work with: the records of the service,
// which may run meanwhile.
type Operator struct {
	People        *people.Service
	Devices       *devices.Operator
	Trail         *audit.Trail
	Accounts      authstore.Accounts
	Grants        registrystore.Grants
	GrantChanges  *grants.Operator
	Methods       methodstore.Store
	MethodChanges *manage.Operator
	Transfer      *transfer.Mover
	Issuer        auth.Issuer // of authenticators
}

// OpenOperator opens the records that there are, and brings their schema up to
// date as a start of the service would. fault.NotFound where the SQLite file is
// missing: a command in the wrong folder does not make another one.
func OpenOperator(ctx context.Context, s settings.Settings, log *logrus.Entry) (*Operator, func(), error) {
	if err := present(s); err != nil {
		return nil, nil, err
	}
	return injectOperator(ctx, patient(s), log)
}

// MakeOperator is OpenOperator for what is done before the service has ever
// started: it makes the SQLite file that is missing.
func MakeOperator(ctx context.Context, s settings.Settings, log *logrus.Entry) (*Operator, func(), error) {
	return injectOperator(ctx, patient(s), log)
}

// patient returns the settings of operator commands: their work takes as long as there is of it.
func patient(s settings.Settings) settings.Settings {
	s.Postgres, s.SQLite = s.Postgres.Patient(), s.SQLite.Patient()
	return s
}

// present tells of records that are missing. PostgreSQL tells itself.
func present(s settings.Settings) error {
	if s.Postgres.URL != "" {
		return nil
	}
	return sqlite.Present(s.SQLite)
}

// Missing reports whether MakeOperator would make the SQLite file.
func Missing(s settings.Settings) bool { return fault.Is(present(s), fault.NotFound) }

// Migrate brings the schema up to date, whatever MIGRATE_ON_START says, and
// returns the names of the migrations that it applied.
func Migrate(ctx context.Context, s settings.Settings) ([]string, error) {
	db, cleanup, err := openRecords(ctx, s.Postgres.Patient(), s.SQLite.Patient(), otlp.Tracing{})
	if err != nil {
		return nil, err
	}
	defer cleanup()
	return db.Migrate(ctx)
}

// Migrations tells how the schema stands, and changes nothing in it. fault.NotFound
// where the SQLite file is missing.
func Migrations(ctx context.Context, s settings.Settings) ([]relational.Step, error) {
	if err := present(s); err != nil {
		return nil, err
	}
	db, cleanup, err := openRecords(ctx, s.Postgres.Patient(), s.SQLite.Patient(), otlp.Tracing{})
	if err != nil {
		return nil, err
	}
	defer cleanup()
	return db.Steps(ctx)
}

// Backup writes the records as they are at one moment into a file, while the service may run, and returns the
// size of the file in bytes (sqlite.WriteBackup). PostgreSQL has its own tools for it.
func Backup(ctx context.Context, s settings.Settings, file string, replace bool) (int64, error) {
	if s.Postgres.URL != "" {
		return 0, errors.New("DATABASE_URL is set: pg_dump makes backups of PostgreSQL, see docs/backup.md")
	}
	return sqlite.WriteBackup(ctx, s.SQLite, file, replace)
}
