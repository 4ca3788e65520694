// Package managing has the use case of the objects that operators manage: what is the same whatever
// kind they are of. A hexagon describes its kind (package kinds), its rules are hooks of an Operator,
// or it has a use case of its own behind Of.
package managing

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Description is what an Operator knows of a kind. Fields are required unless they are optional.
type Description[K ~string, T any] struct {
	Kind  *kinds.Kind
	Parse func(audit.Details) (T, error)
	Show  func(*T) management.Object // as Parse reads it, without empty fields
	Key   func(*T) K
	Owner func(*T) *string
	// Admit is optional. It returns an error for an object that may not be stored in place of another one,
	// which may be nil, and completes it. Its owner is empty if it comes of no file.
	Admit func(ctx context.Context, current, wanted *T) error
	// Removed is optional. It ends what came of an object, in the transaction that removes it.
	Removed func(context.Context, *T) error
	// State is optional, and as that of Of.
	State func(context.Context, *T) audit.Details
}

// Ports are the dependencies of an Operator. All fields are required.
type Ports[K ~string, T any] struct {
	Transactions transaction.Runner
	Store        management.Store[K, T]
	Recorder     authority.Recorder
}

// Operator lists, stores and removes the objects of a kind for operators. Each method returns
// fault.Unavailable when the database fails. It is safe for concurrent use.
type Operator[K ~string, T any] struct {
	of    Description[K, T]
	ports Ports[K, T]
}

// New returns an operator.
func New[K ~string, T any](d Description[K, T], p Ports[K, T]) *Operator[K, T] {
	return &Operator[K, T]{d, p}
}

// List returns at most limit objects whose keys are greater than after, ordered by key.
func (o *Operator[K, T]) List(ctx context.Context, after K, limit int) ([]T, error) {
	return o.ports.Store.List(ctx, after, limit)
}

// Get returns an object, or fault.NotFound.
func (o *Operator[K, T]) Get(ctx context.Context, key K) (T, error) {
	one, err := o.ports.Store.Get(ctx, key)
	if fault.Is(err, fault.NotFound) {
		err = fault.Newf(fault.NotFound, "there is no %s with the name %.60q", o.of.Kind.Noun(), string(key))
	}
	return one, err
}

// Put stores an object in place of the one with its key, and reports whether it is new. One that is the
// same stays, without an event. The file that manages it stays the same unless wanted has another. It
// returns the error of check, which may be nil, and fault.Invalid for more than
// there may be.
func (o *Operator[K, T]) Put(
	ctx context.Context, wanted T, check func(current *T) error,
) (stored T, created bool, err error) {
	err = o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		current, err := o.find(ctx, o.of.Key(&wanted))
		if err == nil && check != nil {
			err = check(current)
		}
		if stored, created = wanted, current == nil; err == nil {
			err = o.admit(ctx, current, &stored)
		}
		change, differs := o.change(current, &stored)
		if err != nil || !differs {
			return err
		}
		if err := o.ports.Store.Save(ctx, stored); err != nil {
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, change)
	})
	return stored, created, err
}

// find returns the stored object with a key; nil without one.
func (o *Operator[K, T]) find(ctx context.Context, key K) (*T, error) {
	one, err := o.ports.Store.Get(ctx, key)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &one, nil
}

func (o *Operator[K, T]) admit(ctx context.Context, current, wanted *T) error {
	if o.of.Admit != nil {
		if err := o.of.Admit(ctx, current, wanted); err != nil {
			return err
		}
	}
	if current == nil {
		n, err := o.ports.Store.Count(ctx)
		if err == nil && n >= o.of.Kind.Most {
			err = fault.Violated("there are %d %ss already: remove some", n, o.of.Kind.Noun())
		}
		if err != nil {
			return err
		}
	} else {
		owner := o.of.Owner(wanted)
		*owner = cmp.Or(*owner, *o.of.Owner(current))
	}
	return nil
}

// change returns the event of a change, and whether anything differs; one of both may be nil.
func (o *Operator[K, T]) change(before, after *T) (audit.Change, bool) {
	return audit.Operate(o.of.Kind.Category, o.of.Kind.Verb(), o.object(before), o.object(after))
}

// object returns an object for the audit log.
func (o *Operator[K, T]) object(one *T) *audit.Object {
	if one == nil {
		return nil
	}
	shown := o.of.Show(one)
	shown.Fields.Set("managedBy", shown.Owner)
	return &shown.Object
}

// Remove removes an object. It returns fault.NotFound, and the error of check, which may be nil.
func (o *Operator[K, T]) Remove(ctx context.Context, key K, check func(current *T) error) error {
	return o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		current, err := o.Get(ctx, key)
		if err == nil && check != nil {
			err = check(&current)
		}
		if err == nil {
			err = o.ports.Store.Remove(ctx, key)
		}
		if err == nil && o.of.Removed != nil {
			err = o.of.Removed(ctx, &current)
		}
		if err != nil {
			return err
		}
		change, _ := o.change(&current, nil)
		return o.ports.Recorder.RecordChanges(ctx, change)
	})
}

// Objects returns the objects as those of any kind.
func (o *Operator[K, T]) Objects() management.Objects {
	return Of[T]{
		Of: o.of.Kind, From: o.of.Parse, Show: o.of.Show, State: o.of.State,
		All: func(ctx context.Context, after string, limit int) ([]T, error) { return o.List(ctx, K(after), limit) },
		One: func(ctx context.Context, key string) (T, error) { return o.Get(ctx, K(key)) },
		Store: func(ctx context.Context, c management.Change, check func(*T) error) (one T, created bool, err error) {
			if one, err = o.of.Parse(c.Fields); err != nil {
				return one, false, err
			}
			*o.of.Owner(&one) = c.Owner
			return o.Put(ctx, one, check)
		},
		Drop: func(ctx context.Context, key string, _ management.Change, check func(*T) error) error {
			return o.Remove(ctx, K(key), check)
		},
	}
}
