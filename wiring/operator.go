package wiring

import (
	"context"

	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/catalogue/manage"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
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
	peopleSet, wire.Value(people.Mail{}), wire.FieldsOf(new(credentials.Config), "Issuer"),
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
	stateSet, tokens.New, wire.Struct(new(tokens.Ports), "*"), wire.Struct(new(Operator), "*"),
)

// Operator holds what operator commands work with. The service may use the same records meanwhile.
type Operator struct {
	People        *people.Service
	Devices       *devices.Operator
	Trail         *auditing.Trail
	Accounts      authstore.Accounts
	Learner       *learning.Learner
	Grants        registrystore.Grants
	Services      *delegating.Services
	Tokens        *tokens.Service
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
	State         *declaring.Service
	Providers     *federating.Providers
	AccessRules   *ruling.Operator
	Issuer        auth.Issuer // of authenticators
}

// OpenOperator opens the existing records and brings their schema up to date, as the service does
// at its start. It returns fault.NotFound if the SQLite file does not exist, so that a command in
// the wrong folder does not create another one.
func OpenOperator(ctx context.Context, s settings.Settings, log *logrus.Entry) (*Operator, func(), error) {
	if err := s.Records.Present(); err != nil {
		return nil, nil, err
	}
	return MakeOperator(ctx, s, log)
}

// MakeOperator is OpenOperator for commands that may run before the first start of the service: it
// creates the SQLite file if it does not exist.
func MakeOperator(ctx context.Context, s settings.Settings, log *logrus.Entry) (*Operator, func(), error) {
	s.Records = s.Records.Patient()
	return injectOperator(ctx, s, log)
}
