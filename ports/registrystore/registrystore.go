// Package registrystore is the port to the records of the registry: the published versions of
// servers, the grants that allow people to change them, the policies that allow publishing without
// a person, and the views that show a part. The rules about them are in core/registry.
//
// All methods are safe for concurrent use and return fault.Unavailable when the database is not
// available.
//
// [github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest] has the contract tests.
package registrystore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// Views stores the views of the registry and the hashes of their tokens. Its methods join the
// transaction that the context carries. A change is visible to the next call on every instance, and
// changes Revision.Views.
type Views interface {
	// Put stores a view, in place of the one with its name, whose tokens stay.
	Put(ctx context.Context, v view.View) error
	// Remove deletes a view with its tokens, or returns fault.NotFound.
	Remove(ctx context.Context, name view.Name) error
	// List returns all views, ordered by the bytes of the name.
	List(ctx context.Context) ([]view.View, error)
	// AddToken stores a token. It returns fault.NotFound if there is no view with its View, and
	// fault.Conflict if the view has a token with its Name, or any view one with its Hash. Times
	// are kept in UTC with microseconds.
	AddToken(ctx context.Context, t view.Token) error
	// RemoveToken deletes a token of a view, or returns fault.NotFound.
	RemoveToken(ctx context.Context, v view.Name, name view.TokenName) error
	// Tokens returns the tokens of all views, ordered by the bytes of the view and then of the
	// name.
	Tokens(ctx context.Context) ([]view.Token, error)
}

// AppliedStates stores the states of files that were applied last. Its methods join the transaction
// that the context carries. Times are kept in UTC with microseconds.
type AppliedStates interface {
	// Save stores a state in place of that of the same owner.
	Save(ctx context.Context, s registry.AppliedState) error
	// List returns the states of all owners, ordered by the bytes of the owner.
	List(ctx context.Context) ([]registry.AppliedState, error)
}

// Webhooks stores the webhooks. Its methods join the transaction that the context carries. A change
// is visible to the next call on every instance. Times are kept in UTC with microseconds.
type Webhooks interface {
	// Put stores a webhook, in place of the one with its ID, whose deliveries stay.
	Put(ctx context.Context, w event.Webhook) error
	// Remove deletes a webhook with its deliveries, or returns fault.NotFound.
	Remove(ctx context.Context, id event.WebhookID) error
	// List returns all webhooks, the oldest first, and of equal times by ID.
	List(ctx context.Context) ([]event.Webhook, error)
	// Conditions returns what became of the deliveries to each webhook. The newest dead ones are
	// first.
	Conditions(ctx context.Context) (map[event.WebhookID]event.Condition, error)
	// Lease makes the holder the only one that delivers to a webhook until a time, and reports
	// whether it could: it cannot while another holder's time has not passed. The holder itself
	// gets the new time. Of parallel calls of several holders, one succeeds.
	Lease(ctx context.Context, id event.WebhookID, l Lease) (bool, error)
	// Release ends the lease of the holder, if it has it.
	Release(ctx context.Context, id event.WebhookID, holder string) error
}

// Lease is the right to deliver to a webhook.
type Lease struct {
	Holder string
	Now    time.Time // the lease of another holder is over if it ended before or at this time
	Until  time.Time
}

// DeliveryReader reads what is to be sent to webhooks, and what was.
type DeliveryReader interface {
	// Waiting returns the webhooks that have a pending delivery whose NextAt is not after now, in
	// no order. It is cheap while there is none.
	Waiting(ctx context.Context, now time.Time) ([]event.WebhookID, error)
	// Due returns deliveries to a webhook, the urgent ones first, and otherwise ordered by sequence:
	// of each server the first pending one, if its NextAt is not after now; at most limit, at least
	// 1. The others of its server wait for it. Purges neither wait nor keep others waiting.
	Due(ctx context.Context, w event.WebhookID, now time.Time, limit int) ([]event.Delivery, error)
	// Attempted returns the deliveries to a webhook that were tried, the last attempt first, without
	// their bodies; at most limit.
	Attempted(ctx context.Context, w event.WebhookID, limit int) ([]event.Delivery, error)
	// Tests returns the tests of a webhook that are kept, the last one first.
	Tests(ctx context.Context, w event.WebhookID) ([]event.Delivery, error)
}

// Deliveries stores the events on their way to webhooks. Its methods join the transaction that the
// context carries.
type Deliveries interface {
	DeliveryReader

	// Add stores deliveries and gives them ascending sequences. It must be called in the
	// transaction of the events, after ServerWriter.Lock of their server, so that the sequences of
	// one server have the order of the commits. A delivery to a webhook that does not exist any
	// more is left out.
	Add(ctx context.Context, list []event.Delivery) error
	// AddTest stores a test of a webhook (event.NewTest), and keeps the last event.MaxTests of them. One
	// of a webhook that does not exist any more is left out.
	AddTest(ctx context.Context, d event.Delivery) error
	// Update stores the outcome of an attempt, that is the fields from State on, of a pending
	// delivery, and the last success or failure of its webhook at a time. It does nothing if the
	// stored delivery is not pending any more, or was made pending again since it was read.
	Update(ctx context.Context, d event.Delivery, at time.Time) error
	// Redeliver makes deliveries to a webhook pending since now, and returns how many: all dead
	// ones, or with an event the one of that event, whatever its state is.
	Redeliver(ctx context.Context, w event.WebhookID, of event.ID, now time.Time) (int, error)
	// RemoveEnded removes, of each webhook, the deliveries in a state that is not pending which
	// ended before a time, and the oldest of those beyond a number. It returns how many, also with
	// an error.
	RemoveEnded(ctx context.Context, s event.State, before time.Time, keep int) (int, error)
}
