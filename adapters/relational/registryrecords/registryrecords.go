// Package registryrecords stores the versions of servers, their remote addresses, what is in
// quarantine, the grants, the policies of publishers, the reviews, the views, the webhooks,
// their deliveries, and the mirrors in a relational database. It implements the ports of
// ports/registrystore. It has the queries, not the rules: core/registry decides what is stored, and
// the constraints of the schema hold for all callers.
package registryrecords

import (
	"errors"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// checkRow returns nil, or the fault for a row with values that do not parse.
func checkRow(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return database.BrokenRow(err)
	}
	return nil
}

// changedOr returns err, or none if a statement without an error changed no row.
func changedOr[N int | int64](n N, err, none error) error {
	if err == nil && n == 0 {
		return none
	}
	return err
}

// Set provides the stores of the registry from a database.DB and a Config.
var Set = wire.NewSet(
	NewServers, wire.Bind(new(registrystore.ServerReader), new(*Servers)), wire.Bind(new(registrystore.ServerWriter), new(*Servers)),
	wire.Bind(new(registrystore.SnapshotReader), new(*Servers)),
	NewChanges, wire.Bind(new(registrystore.Changes), new(*Changes)),
	NewGrants, wire.Bind(new(registrystore.Grants), new(*Grants)),
	NewViews, wire.Bind(new(registrystore.Views), new(*Views)),
	NewPolicies, wire.Bind(new(registrystore.Policies), new(*Policies)),
	NewReviews, wire.Bind(new(registrystore.Reviews), new(*Reviews)), wire.Bind(new(registrystore.ReviewBacklog), new(*Reviews)),
	NewReviewRules, wire.Bind(new(registrystore.ReviewRules), new(*ReviewRules)),
	NewReviewNotices, wire.Bind(new(registrystore.ReviewNotices), new(*ReviewNotices)),
	NewWebhooks, wire.Bind(new(registrystore.Webhooks), new(*Webhooks)),
	NewDeliveries, wire.Bind(new(registrystore.Deliveries), new(*Deliveries)),
	NewMirrors, wire.Bind(new(registrystore.Mirrors), new(*Mirrors)), wire.Bind(new(registrystore.MirrorRereader), new(*Mirrors)),
	NewMirroredVersions, wire.Bind(new(registrystore.MirroredVersions), new(*MirroredVersions)),
	NewQuarantine, wire.Bind(new(registrystore.Quarantine), new(*Quarantine)),
)
