package wiring

import (
	"context"

	"github.com/google/wire"
	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/adminapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/adapters/system"
	"github.com/tollgate-dev/tollgate/adapters/valkey"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/learning"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/catalogue/manage"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/transferring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
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
	adminapi.New, wire.Struct(new(adminapi.UseCases), "Callers", "Operators", "Recorder", "Cursors", "Clock", "Accounts",
		"People", "Devices", "Grants", "GrantChanges", "Policies", "Views", "Mirrors", "Webhooks", "Reviews", "Methods", "Listing",
		"Log", "Services", "Tokens", "State", "Providers", "Kinds"),
	registryapi.NewReviews, registryapi.NewQuarantine, wire.Value(registryapi.Resource{}), newLocalAPI,
	inprocess.CommandsSet, permit.NewOperators,
	mirrorsSet, notifying.NewOperator, wire.Struct(new(notifying.OperatorPorts), "*"), eventsSet,
	stateSet, tokens.New, wire.Struct(new(tokens.Ports), "*"), wire.Struct(new(Operator), "*"),
	wire.Struct(new(registering.Ports), "Transactions", "Clients", "Resources", "Families", "Consents", "Recorder", "Clock", "Entropy"),
)

// Operator holds what operator commands work with: the API in this process, and the use cases of what
// it does not have. The service may use the same records meanwhile.
type Operator struct {
	API           *rest.Local
	People        *people.Service
	Devices       *devices.Operator
	Learner       *learning.Learner
	MethodChanges *manage.Operator
	Quarantine    *quarantining.Service
	Transfer      *transferring.Mover
	AllowLists    *allowlist.Source
	Views         *viewing.Operator
	Webhooks      *notifying.Operator
	Mirrors       *mirroring.Operator
	State         *declaring.Service
	Issuer        auth.Issuer // of authenticators
}

func newLocalAPI(a *adminapi.API, r *registryapi.Reviews, q *registryapi.Quarantine) *rest.Local {
	return rest.NewLocal(a, r, q)
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
