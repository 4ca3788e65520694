package wiring

import (
	"context"
	"errors"

	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/iplists"
	"github.com/tollgate-dev/tollgate/adapters/maxmind"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/sqlite"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/replay"
	"github.com/tollgate-dev/tollgate/core/catalogue/manage"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/transferring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/sessioncache"
	"github.com/tollgate-dev/tollgate/wiring/settings"
)

// operatorSet is everything that operator commands use: the records, and the use cases of
// operators. Commands end too soon for metrics and traces.
var operatorSet = wire.NewSet(
	settingsSet, system.Set, recordsSet, uncountedSet, wire.Value(otlp.Tracing{}),
	people.New, wire.Struct(new(people.Ports), "*"), wire.FieldsOf(new(credentials.Config), "Issuer"),
	devices.NewOperator, devices.New, inprocess.TrailSet,
	wire.Struct(new(devices.Ports), "Devices", "DeviceTokens", "Sessions", "Levels", "Transaction", "Cache",
		"Trail", "Clock"),
	valkey.NewSessionDropper, wire.Bind(new(sessioncache.Cache), new(valkey.SessionDropper)),
	learning.New, wire.Struct(new(learning.Ports), "*"),
	delegating.NewGrantOperator, wire.Struct(new(delegating.GrantPorts), "*"),
	manage.New, wire.Struct(new(manage.Ports), "*"),
	transferring.New, wire.Struct(new(transferring.Ports), "*"), allowlist.NewSource, policySet, operatorReviewSet,
	quarantineSet, wire.Value((*notices.Notifier)(nil)),
	viewing.NewOperator, wire.Struct(new(viewing.OperatorPorts), "*"),
	mirrorsSet, notifying.NewOperator, wire.Struct(new(notifying.OperatorPorts), "*"), eventsSet,
	wire.Struct(new(Operator), "*"),
)

// Operator holds what operator commands work with. The service may use the same records meanwhile.
type Operator struct {
	People        *people.Service
	Devices       *devices.Operator
	Trail         *auditing.Trail
	Accounts      authstore.Accounts
	Learner       *learning.Learner
	Grants        registrystore.Grants
	GrantChanges  *delegating.GrantOperator
	Methods       methodstore.Store
	MethodChanges *manage.Operator
	Policies      *delegating.Policies
	Reviews       *reviewing.Service
	Quarantine    *quarantining.Service
	Transfer      *transferring.Mover
	AllowLists    *allowlist.Source
	Views         *viewing.Operator
	Webhooks      *notifying.Operator
	Mirrors       *mirroring.Operator
	Issuer        auth.Issuer // of authenticators
}

// OpenOperator opens the existing records and brings their schema up to date, as the service does
// at its start. It returns fault.NotFound if the SQLite file does not exist, so that a command in
// the wrong folder does not create another one.
func OpenOperator(ctx context.Context, s settings.Settings, log *logrus.Entry) (*Operator, func(), error) {
	if err := checkSQLiteFile(s); err != nil {
		return nil, nil, err
	}
	return injectOperator(ctx, withoutTimeouts(s), log)
}

// MakeOperator is OpenOperator for commands that may run before the first start of the service: it
// creates the SQLite file if it does not exist.
func MakeOperator(ctx context.Context, s settings.Settings, log *logrus.Entry) (*Operator, func(), error) {
	return injectOperator(ctx, withoutTimeouts(s), log)
}

// withoutTimeouts returns the settings of operator commands, whose queries may take any time.
func withoutTimeouts(s settings.Settings) settings.Settings {
	s.Postgres, s.SQLite = s.Postgres.Patient(), s.SQLite.Patient()
	return s
}

// checkSQLiteFile returns fault.NotFound if the records are in a SQLite file that does not exist.
func checkSQLiteFile(s settings.Settings) error {
	if s.Postgres.URL != "" {
		return nil
	}
	return sqlite.Present(s.SQLite)
}

// Missing reports whether MakeOperator would create the SQLite file.
func Missing(s settings.Settings) bool { return fault.Is(checkSQLiteFile(s), fault.NotFound) }

// Migrate applies the missing migrations, also if MIGRATE_ON_START is false, and returns their
// names.
func Migrate(ctx context.Context, s settings.Settings) ([]string, error) {
	db, cleanup, err := openRecords(ctx, s.Postgres.Patient(), s.SQLite.Patient(), otlp.Tracing{})
	if err != nil {
		return nil, err
	}
	defer cleanup()
	return db.Migrate(ctx)
}

// Migrations returns the state of each migration. It does not change the schema. It returns
// fault.NotFound if the SQLite file does not exist.
func Migrations(ctx context.Context, s settings.Settings) ([]database.Step, error) {
	if err := checkSQLiteFile(s); err != nil {
		return nil, err
	}
	db, cleanup, err := openRecords(ctx, s.Postgres.Patient(), s.SQLite.Patient(), otlp.Tracing{})
	if err != nil {
		return nil, err
	}
	defer cleanup()
	return db.Steps(ctx)
}

// Backup writes a consistent copy of the SQLite file to a file, also while the service runs, and
// returns its size in bytes (sqlite.WriteBackup). It returns an error if the records are in
// PostgreSQL, which has its own tools for backups.
func Backup(ctx context.Context, s settings.Settings, file string, replace bool) (int64, error) {
	if s.Postgres.URL != "" {
		return 0, errors.New("DATABASE_URL is set: pg_dump makes backups of PostgreSQL, see docs/backup.md")
	}
	return sqlite.WriteBackup(ctx, s.SQLite, file, replace)
}

// NewReplayer returns a Replayer that assesses recorded sign-ins with the weights, bounds and
// sources of the settings. It opens no records.
func NewReplayer(s settings.Settings, stepUp replay.Assumption, scorer replay.Scorer) (*replay.Replayer, error) {
	geography, err := maxmind.Open(s.Places)
	if err != nil {
		return nil, err
	}
	reputation, err := iplists.Open(s.IPLists)
	if err != nil {
		return nil, err
	}
	return replay.New(replay.Config{Assess: s.SignIn.Assess(), StepUp: stepUp, Scorer: scorer}, geography,
		reputation), nil
}
