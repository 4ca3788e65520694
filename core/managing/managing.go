// Package managing has the use case of the objects that operators manage: what is the same whatever
// kind they are of. A hexagon describes its kind (package kinds), its rules are hooks of an Operator,
// or it has a use case of its own behind Of.
package managing

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
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

// Of makes management.Objects of the functions of a use case, each as the method that calls it says. Show
// returns an object as From reads it, without empty fields.
type Of[T any] struct {
	Of    *kinds.Kind
	From  func(audit.Details) (T, error)
	Show  func(*T) management.Object
	All   func(ctx context.Context, after string, limit int) ([]T, error)
	One   func(ctx context.Context, key string) (T, error)
	Store func(ctx context.Context, c management.Change, check func(*T) error) (stored T, created bool, err error)
	Drop  func(ctx context.Context, key string, c management.Change, check func(*T) error) error
	// State is optional: what is known of a stored object besides what Show returns. It is called for each
	// object of a list.
	State func(context.Context, *T) audit.Details
}

// PageOf returns the function All of a list that is short enough to be read whole.
func PageOf[T any](
	list func(context.Context) ([]T, error), key func(*T) string,
) func(ctx context.Context, after string, limit int) ([]T, error) {
	return func(ctx context.Context, after string, limit int) ([]T, error) {
		all, err := list(ctx)
		all = slices.DeleteFunc(all, func(one T) bool { return key(&one) <= after })
		slices.SortFunc(all, func(a, b T) int { return cmp.Compare(key(&a), key(&b)) })
		return all[:min(len(all), limit)], err
	}
}

// Kind implements management.Objects.
func (o Of[T]) Kind() *kinds.Kind { return o.Of }

// Parse implements management.Objects.
func (o Of[T]) Parse(fields audit.Details) (management.Object, error) {
	one, err := o.From(fields)
	if err != nil {
		return management.Object{}, err
	}
	return o.Show(&one), nil
}

// List implements management.Objects.
func (o Of[T]) List(ctx context.Context, after string, limit int) ([]management.Object, error) {
	all, err := o.All(ctx, after, limit)
	return each.MapRef(all, func(one *T) management.Object { return o.stored(ctx, one) }), err
}

// Get implements management.Objects.
func (o Of[T]) Get(ctx context.Context, key string) (management.Object, error) {
	one, err := o.One(ctx, key)
	return o.shown(ctx, one, err)
}

// Put implements management.Objects.
func (o Of[T]) Put(ctx context.Context, c management.Change) (management.Object, bool, error) {
	stored, created, err := o.Store(ctx, c, o.check(c.Check))
	shown, err := o.shown(ctx, stored, err)
	return shown, created, err
}

// Remove implements management.Objects.
func (o Of[T]) Remove(ctx context.Context, key string, c management.Change) error {
	return o.Drop(ctx, key, c, o.check(c.Check))
}

func (o Of[T]) shown(ctx context.Context, one T, err error) (management.Object, error) {
	if err != nil {
		return management.Object{}, err
	}
	return o.stored(ctx, &one), nil
}

// stored returns a stored object with its state.
func (o Of[T]) stored(ctx context.Context, one *T) management.Object {
	shown := o.Show(one)
	if o.State != nil {
		shown.State = o.State(ctx, one)
	}
	return shown
}

// check returns a check of a shown object as that of a stored one; nil for nil.
func (o Of[T]) check(shown management.Check) func(*T) error {
	if shown == nil {
		return nil
	}
	return func(current *T) error {
		if current == nil {
			return shown(nil)
		}
		object := o.Show(current)
		return shown(&object)
	}
}
