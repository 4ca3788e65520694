// Package transaction is the port through which a use case makes changes to
// several stores whole or not at all.
package transaction

import "context"

// Runner runs a function as one transaction of the record store.
type Runner interface {
	// Atomically calls do with a context that carries a transaction. Every
	// store of the same adapter that is called with that context takes part.
	// When do returns nil, all its changes are stored durably before
	// Atomically returns; when it returns an error or panics, none is, and
	// Atomically returns that error. A context that carries a transaction
	// already is joined, not nested: when a joined call returns an error, the
	// outer one stores nothing either, and returns that error also where its
	// own do goes on and returns nil. So it is with a statement that failed in
	// a database. do must not keep the context, start goroutines that use it,
	// or wait for anything but the stores. do may be called again, from the
	// start, when the database asks for a retry.
	//
	// Errors: do's own; fault.Unavailable when the database is away;
	// the context's error when it ended first.
	Atomically(ctx context.Context, do func(ctx context.Context) error) error
}
