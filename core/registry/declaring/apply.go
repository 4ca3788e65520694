package declaring

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Request is a document to apply.
type Request struct {
	Document Node
	Owner    string // empty for DefaultOwner
	DryRun   bool   // change nothing
	Prune    bool   // delete what the owner manages and the document does not have
	Adopt    bool   // take over what another owner manages, or was made by hand
	ApplyID  string // as the events of the changes have it
	By       authority.Caller
	Operator authority.Caller // authority.Operator
}

// DefaultOwner is the owner of a document that is applied without one.
const DefaultOwner = "default"

// dryRun is the error that undoes the changes of a dry run.
type dryRun struct{ changes []Change }

func (dryRun) Error() string { return "a dry run changes nothing" }

// Apply makes the stored objects what a document declares, all or nothing, and returns what it has
// done with each: in the order of kinds, the objects of the document and then those that it has
// deleted. Two calls do not run at once. It returns fault.Invalid with the places in the document
// for one that is wrong, with the code fault.RuleViolated if it refers to what does not exist, and
// fault.Conflict for objects that the owner may not change.
func (s *Service) Apply(ctx context.Context, q Request) ([]Change, error) {
	if err := CheckOwner(q.Owner); err != nil {
		return nil, err
	}
	q.Owner = cmp.Or(q.Owner, DefaultOwner)
	changes, err := transaction.Do(transaction.Exclusive(transaction.Long(ctx)), s.ports.Transactions,
		func(ctx context.Context) ([]Change, error) {
			changes, err := s.apply(ctx, &q)
			if err == nil && q.DryRun {
				err = dryRun{changes}
			}
			return changes, err
		})
	var dry dryRun
	if errors.As(err, &dry) {
		return dry.changes, nil
	}
	return changes, err
}

// apply applies a document in a transaction.
func (s *Service) apply(ctx context.Context, q *Request) ([]Change, error) {
	steps, err := s.plan(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, one := range ordered(steps) {
		if err := one.run(ctx, q.Owner); err != nil {
			return nil, err
		}
	}
	return each.Map(steps, func(one step) Change { return one.Change }), s.record(ctx, q, steps)
}

// run carries out a step. An error names the place in the document.
func (s *step) run(ctx context.Context, owner string) (err error) {
	switch s.Operation {
	case Keep:
	case Delete:
		err = s.stored.remove(ctx)
	default:
		err = s.wanted.save(ctx, owner, s.stored)
	}
	f, ok := fault.As(err)
	if !ok || f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		return err
	}
	located := *f
	located.Message = cmp.Or(s.path, s.Kind+" "+s.Key) + ": " + f.Message
	return &located
}

// record stores what the owner manages since a request that changed something.
func (s *Service) record(ctx context.Context, q *Request, steps []step) error {
	changed := false
	state := registry.AppliedState{
		Owner: q.Owner, ApplyID: q.ApplyID, By: q.By.Actor().Who, At: s.ports.Clock.Now().UTC().Truncate(time.Microsecond),
	}
	for i := range steps {
		one := &steps[i]
		changed = changed || one.Operation != Keep
		if one.wanted == nil || one.Operation == Keep && one.stored.owner != q.Owner {
			continue
		}
		o := one.wanted.Object
		o.Fields = withoutSecret(o.Fields)
		state.Objects = append(state.Objects, o)
	}
	if !changed {
		return nil
	}
	return s.ports.States.Save(ctx, state)
}
