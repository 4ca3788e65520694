package authstore

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// Directory finds people for those who operate the service.
type Directory interface {
	// Search returns at most q.Limit people, ordered by e-mail address.
	Search(ctx context.Context, q DirectoryQuery) ([]Person, error)
	// Count returns the number of accounts, but no more than most.
	Count(ctx context.Context, most int) (int, error)
}

// DirectoryQuery selects people. A zero field does not restrict the selection.
type DirectoryQuery struct {
	ID    auth.UserID
	Part  string // of the e-mail address or the name; the letters A to Z are the same in either case
	State auth.AccountState
	// AdmittedAt selects those whose AdmittedUntil is later.
	AdmittedAt time.Time

	After auth.Email // exclusive
	Limit int        // 1 or more
}

// Person is an account with what a list of people shows.
type Person struct {
	auth.Account

	LastSignIn time.Time // zero before the first
	Identities int       // those of companies that are linked
	Passkeys   int
}

// Operators knows whether there are people who can operate the service: they have the grant
// operate, and their account is active.
type Operators interface {
	// Lock waits until no other transaction, on any instance, has the lock, and keeps it until the
	// transaction of the context ends. Without a transaction it does nothing.
	Lock(ctx context.Context) error
	// Any reports whether there is a person who can operate.
	Any(ctx context.Context) (bool, error)
}

// forced is the key of a context of ByForce.
type forced struct{}

// ByForce returns a context in which KeepOperator does not refuse a change.
func ByForce(ctx context.Context) context.Context { return context.WithValue(ctx, forced{}, true) }

// KeepOperator calls change, which may keep a person from operating, in the transaction of the
// context. If somebody could operate before and no one can after it, it returns fault.Conflict with
// code last_operator, and the transaction must end with that error. Of transactions that call it,
// one runs after the other. It returns the error of change.
func KeepOperator(ctx context.Context, o Operators, change func(ctx context.Context) error) error {
	if ctx.Value(forced{}) != nil {
		return change(ctx)
	}
	if err := o.Lock(ctx); err != nil {
		return err
	}
	before, err := o.Any(ctx)
	if err != nil {
		return err
	}
	if err := change(ctx); err != nil || !before {
		return err
	}
	after, err := o.Any(ctx)
	if err == nil && !after {
		err = fault.New(fault.Conflict, "this is the last active person who can operate the service: "+
			"let another person operate it first").WithCode(auth.CodeLastOperator)
	}
	return err
}
