// Package inprocess connects hexagons within the process: the throttle of the API uses the rate
// limit core, and the authority of the registry uses authentication. It contains no rules of its
// own.
package inprocess

import (
	"context"

	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/foreign"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// TrailSet provides the audit log of the use cases. The changes of operators need no bridge: every
// hexagon makes changes of one form.
var TrailSet = wire.NewSet(auditing.New, wire.Bind(new(authority.Recorder), new(*auditing.Trail)))

// AuthoritySet provides the authority of the registry.
var AuthoritySet = wire.NewSet(
	NewAuthority, wire.Bind(new(authority.Authority), new(*Authority)), NewMemberships,
	foreign.New, wire.Struct(new(foreign.Ports), "*"),
)

// CommandsSet provides the authority of operator commands.
var CommandsSet = wire.NewSet(wire.InterfaceValue(new(authority.Authority), Commands{}))

// DecisionsSet provides what decisions about calls depend on.
var DecisionsSet = wire.NewSet(NewMembers, wire.Struct(new(MemberPorts), "*"), NewResources)

// ActsSet provides the record of what callers do.
var ActsSet = wire.NewSet(NewActs, wire.Bind(new(authority.Acts), new(*Acts)))

// PublishersSet provides the tokens, events and notices of publishers.
var PublishersSet = wire.NewSet(NewPublishers, wire.Bind(new(authority.Publishers), new(*Publishers)))

// MakersSet provides the people who create policies.
var MakersSet = wire.NewSet(NewMakers, wire.Bind(new(authority.Makers), new(*Makers)))

// ReviewNotifierSet provides the notices of reviews.
var ReviewNotifierSet = wire.NewSet(NewReviewNotifier, wire.Bind(new(authority.ReviewNotifier), new(*ReviewNotifier)))

// GranterSet provides the grants of people.
var GranterSet = wire.NewSet(NewGranter, wire.Bind(new(authority.Granter), new(*Granter)))

var _ authority.Acts = (*Acts)(nil)

// Acts writes what callers do to the registry to the audit log. It is safe for concurrent use.
type Acts struct{ trail *auditing.Trail }

// NewActs returns Acts that writes to t.
func NewActs(t *auditing.Trail) *Acts { return &Acts{t} }

// Record implements [authority.Acts].
func (a *Acts) Record(ctx context.Context, act authority.Act) error {
	return a.trail.RecordChanges(ctx, act.Change())
}
