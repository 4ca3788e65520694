// Package transaction is the port that makes changes to several stores in one transaction.
package transaction

import "context"

// Runner runs a function as one transaction of the record store.
type Runner interface {
	// Atomically calls do with a context that carries a transaction. Every store of the same
	// adapter that is called with this context takes part in it. If do returns nil, all changes are
	// stored durably before Atomically returns. If do returns an error or panics, no change is
	// stored, and Atomically returns the error or panics.
	//
	// If ctx already carries a transaction, do joins it. If a joined call returns an error, the
	// outer transaction is rolled back and returns that error, even if its own do ignores the error
	// and returns nil. The same holds for a statement that failed in the database.
	//
	// do must not keep the context, start goroutines that use it, or wait for anything except the
	// stores. It may be called again, from the start, if the database requires a retry.
	//
	// It returns the error of do, fault.Unavailable when the database is not available, or the
	// context's error if the context ended first.
	Atomically(ctx context.Context, do func(ctx context.Context) error) error
}

// Do calls do as Runner.Atomically does, and returns its value. The value is that of the call of do
// whose changes are stored: do returns what it has found and changed, and changes nothing outside
// of the stores, so that it may be called again. With an error, the value is zero.
func Do[T any](ctx context.Context, r Runner, do func(ctx context.Context) (T, error)) (T, error) {
	var value, none T
	err := r.Atomically(ctx, func(ctx context.Context) (err error) {
		value, err = do(ctx)
		return err
	})
	if err != nil {
		return none, err
	}
	return value, nil
}

// length is the context key of the marks of Long and Brief.
type length struct{}

type mark uint8

const (
	long mark = iota + 1
	brief
)

// Long marks work whose duration depends on the number of records, for example a change of all
// versions of a server or the removal of old records. A store normally limits the duration of a
// whole call, so that callers do not wait for a database that hangs; for marked work it limits each
// statement instead.
func Long(ctx context.Context) context.Context { return context.WithValue(ctx, length{}, long) }

// IsLong reports whether the context is marked by Long.
func IsLong(ctx context.Context) bool { return ctx.Value(length{}) == long }

// Brief marks a change that the caller can skip. A store that has one writer at a time then fails
// at once instead of waiting for its turn.
func Brief(ctx context.Context) context.Context { return context.WithValue(ctx, length{}, brief) }

// IsBrief reports whether the context is marked by Brief.
func IsBrief(ctx context.Context) bool { return ctx.Value(length{}) == brief }

// exclusive is the context key of the mark of Exclusive.
type exclusive struct{}

// Exclusive marks a change of what operators manage: grants, policies, views, mirrors, webhooks and
// rules. Of the transactions that begin with a marked context, one runs at a time, on all
// instances, and each reads what those before it have stored. So a change may depend on what it
// reads, without other locks.
func Exclusive(ctx context.Context) context.Context { return context.WithValue(ctx, exclusive{}, true) }

// IsExclusive reports whether the context is marked by Exclusive.
func IsExclusive(ctx context.Context) bool { return ctx.Value(exclusive{}) != nil }
