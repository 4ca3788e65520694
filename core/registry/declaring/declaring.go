// Package declaring holds the use cases of the state in a file: what an operator declares of
// grants, service accounts, policies, views, mirrors, webhooks, review rules, providers and access
// rules is compared with
// what is stored and applied in one transaction. It knows no format of files, and changes objects
// by the use cases of their kinds.
package declaring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
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

// Check returns fault.Invalid, with the places, for a document that is wrong whatever is stored. It
// checks the forms of the objects; Apply checks the rest.
func (s *Service) Check(document *Node) error {
	var found problems
	kinds := (&run{Service: s}).kinds()
	lists := readLists(document, kinds, &found)
	for _, k := range kinds {
		l := lists[k.member]
		for i := range l.nodes {
			readFields(&l.nodes[i], fmt.Sprintf("%s[%d]", l.path, i), k.fields, &found)
		}
	}
	return found.err(fault.Invalid, fault.ValidationError)
}

// CheckAccessRules returns the access rules of a document, and fault.Invalid, with the places,
// if one of them is wrong, or the document has what no document has.
func (s *Service) CheckAccessRules(ctx context.Context, document *Node) ([]audit.Object, error) {
	var found problems
	r := &run{Service: s}
	k := r.managed("accessRules")
	l := readLists(document, r.kinds(), &found)[k.member]
	items, err := k.decodeList(ctx, l, &found, &found)
	if err != nil {
		return nil, err
	}
	rules := make([]audit.Object, len(items))
	for i := range items {
		rules[i] = items[i].Object
	}
	return rules, found.err(fault.Invalid, fault.ValidationError)
}

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
	changes := make([]Change, 0, len(steps))
	for _, one := range steps {
		changes = append(changes, one.Change)
	}
	return changes, s.record(ctx, q, steps)
}

// plan returns the steps of a request, in the order of kinds.
func (s *Service) plan(ctx context.Context, q *Request) ([]step, error) {
	r, err := s.newRun(ctx, q)
	if err != nil {
		return nil, err
	}
	var found, broken, conflicts problems
	kinds := r.kinds()
	lists := readLists(&q.Document, kinds, &found)
	var steps []step
	for i := range kinds {
		k := &kinds[i]
		wanted, err := k.decodeList(ctx, lists[k.member], &found, &broken)
		if err != nil {
			return nil, err
		}
		stored, err := k.stored(ctx)
		if err != nil {
			return nil, err
		}
		steps = append(steps, q.planKind(k, wanted, stored, &conflicts)...)
	}
	return steps, firstError(found.err(fault.Invalid, fault.ValidationError), conflicts.err(fault.Conflict, ""),
		broken.err(fault.Invalid, fault.RuleViolated))
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// ordered returns the steps in the order in which they must run: holders of grants exist before
// their grants and go after them, a person gets the grant to operate before another one loses it,
// and what is deleted makes room for what is created.
func ordered(steps []step) []step {
	rank := func(s step) int {
		early := s.Kind == kindServiceAccount || s.Kind == kindGrant
		switch {
		case early && s.Operation != Delete:
			return 0
		case s.Kind == kindGrant:
			return 1
		case s.Operation == Delete:
			return 2
		}
		return 3
	}
	sorted := slices.Clone(steps)
	slices.SortStableFunc(sorted, func(a, b step) int { return rank(a) - rank(b) })
	return sorted
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
	located.Message = s.Kind + " " + s.Key + ": " + f.Message
	if s.path != "" {
		located.Message = s.path + ": " + f.Message
	}
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

// Export returns the stored objects as a document that changes nothing if it is applied: those that
// an owner manages, or all for an empty owner. It has no secrets, of equal objects one, and no object
// that refers to what does not exist any more.
func (s *Service) Export(ctx context.Context, owner string) (audit.Details, error) {
	return transaction.Do(ctx, s.ports.Transactions, func(ctx context.Context) (audit.Details, error) {
		document := audit.Details{"apiVersion": audit.Text(Version), "kind": audit.Text(Document)}
		r, err := s.newRun(ctx, &Request{})
		if err != nil {
			return nil, err
		}
		for _, k := range r.kinds() {
			stored, err := k.stored(ctx)
			if err != nil {
				return nil, err
			}
			// by key, and not by internal ids, so that sites with one state export one text
			slices.SortStableFunc(stored, func(a, b object) int {
				return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(fmt.Sprint(a.Fields), fmt.Sprint(b.Fields)))
			})
			list, known := audit.List{}, map[string][]*object{}
			for i := range stored {
				o := &stored[i]
				o.Fields = withoutSecret(o.Fields)
				if owner != "" && o.owner != owner || slices.ContainsFunc(known[o.Key], o.equals) {
					continue
				}
				if _, err := k.decode(ctx, o.Fields); err == nil {
					known[o.Key], list = append(known[o.Key], o), append(list, o.Fields)
				}
			}
			document[k.member] = list
		}
		return document, nil
	})
}

// Applied is the last document of an owner that changed something, and what has changed since.
type Applied struct {
	registry.AppliedState

	Drift []Change
}

// Applied returns the last state of each owner with its drift, ordered by owner: objects that exist
// no more, and fields that differ from those in the document.
func (s *Service) Applied(ctx context.Context) ([]Applied, error) {
	return transaction.Do(ctx, s.ports.Transactions, func(ctx context.Context) ([]Applied, error) {
		states, err := s.ports.States.List(ctx)
		if err != nil || len(states) == 0 {
			return nil, err
		}
		r, err := s.newRun(ctx, &Request{})
		if err != nil {
			return nil, err
		}
		stored := map[string][]object{}
		for _, k := range r.kinds() {
			if stored[k.name], err = k.stored(ctx); err != nil {
				return nil, err
			}
		}
		all := make([]Applied, len(states))
		for i, state := range states {
			all[i] = Applied{state, driftOf(&state, stored)}
		}
		return all, nil
	})
}

// driftOf returns what differs between a state and the stored objects, by kind.
func driftOf(state *registry.AppliedState, stored map[string][]object) (drift []Change) {
	byKind := map[string][]item{}
	for _, o := range state.Objects {
		byKind[o.Kind] = append(byKind[o.Kind], item{object: object{Object: o}})
	}
	for name, wanted := range byKind {
		pairs, _ := match(wanted, stored[name], state.Owner)
		for i := range wanted {
			was, is := &wanted[i], pairs[i]
			if is == nil {
				drift = append(drift, Change{name, was.Key, Delete, audit.Compare(was.Fields, nil)})
				continue
			}
			fields := audit.Compare(was.Fields, withoutSecret(is.Fields))
			if is.owner != state.Owner {
				fields[fieldOwner] = audit.List{audit.Text(state.Owner), optional(is.owner)}
			}
			if len(fields) > 0 {
				drift = append(drift, Change{name, was.Key, Update, fields})
			}
		}
	}
	slices.SortStableFunc(drift, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	return drift
}
