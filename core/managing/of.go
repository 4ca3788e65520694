package managing

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/kinds"
	"github.com/tollgate-dev/tollgate/ports/management"
)

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
	objects := make([]management.Object, len(all))
	for i := range all {
		objects[i] = o.stored(ctx, &all[i])
	}
	return objects, err
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
