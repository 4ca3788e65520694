package declaring

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
)

// kind is a kind of objects. What is new in it is one entry in the table of run.kinds.
type kind struct {
	name   string // in the singular, for example "view"
	member string // its list in a document, for example "views"
	// alike is true if several objects may have one key. Otherwise a file has each key once.
	alike  bool
	fields []kinds.Field
	// decode returns the object with the values of its fields. It returns fault.Invalid with the
	// name of a field at the start of the message, and with fault.RuleViolated for a reference to
	// what does not exist.
	decode func(ctx context.Context, values audit.Details) (object, error)
	// stored returns all objects that exist.
	stored func(ctx context.Context) ([]object, error)
}

// object is an object of a kind, as it is stored or as a file describes it.
type object struct {
	audit.Object

	id    string // of a stored object whose key is not its id; otherwise empty
	owner string // of the file that manages it; empty if it was made by hand
	// save stores the object in place of a stored one, which may be nil.
	save   func(ctx context.Context, owner string, before *object) error
	remove func(ctx context.Context) error
}

// equals reports whether o has the fields of a stored object. A secret that is left out is kept.
func (o *object) equals(stored *object) bool { return len(o.compare(stored)) == 0 }

// compare returns the fields that o changes of a stored object.
func (o *object) compare(stored *object) audit.Details {
	before := stored.Fields
	if _, given := o.Fields[audit.FieldSecret]; !given {
		before = withoutSecret(before)
	}
	return audit.Compare(before, o.Fields)
}

// withoutSecret returns the fields without the one that shows a secret.
func withoutSecret(fields audit.Details) audit.Details {
	rest := make(audit.Details, len(fields))
	for n, v := range fields {
		if n != audit.FieldSecret {
			rest[n] = v
		}
	}
	return rest
}

// item is an object of a file with its place.
type item struct {
	object

	path string
	node *Node
}

// Operation is what becomes of an object.
type Operation string

// The operations.
const (
	Create Operation = "create"
	Update Operation = "update"
	Delete Operation = "delete"
	Keep   Operation = "none"
)

// Change is what Apply does with an object, or would do.
type Change struct {
	Kind, Key string
	Operation Operation
	Fields    audit.Details // those that differ, as audit.Compare returns them
}

// step is a change with what carries it out.
type step struct {
	Change

	path   string
	wanted *object // nil for Delete
	stored *object // nil for Create
}

// fieldOwner is the field of the owner of an object.
const fieldOwner = "managedBy"

// planKind returns the steps for the objects of one kind. It adds a conflict for each object that
// the owner may not change.
func (q *Request) planKind(k *kind, wanted []item, stored []object, conflicts *problems) (steps []step) {
	pairs, rest := match(wanted, stored, q.Owner)
	for i := range wanted {
		w := &wanted[i]
		s := step{Change{k.name, w.Key, Create, audit.Compare(nil, w.Fields)}, w.path, &w.object, pairs[i]}
		if s.stored != nil {
			s.Fields = w.compare(s.stored)
			foreign := s.stored.owner != q.Owner
			if foreign && len(s.Fields) > 0 && !q.Adopt {
				conflicts.add(w.node.Position, w.path, "would change the %s %q, which %s", k.name, w.Key,
					describeOwner(s.stored.owner))
			}
			if foreign && q.Adopt {
				s.Fields[fieldOwner] = audit.List{optional(s.stored.owner), audit.Text(q.Owner)}
			}
			if s.Operation = Update; len(s.Fields) == 0 {
				s.Operation = Keep
			}
		}
		steps = append(steps, s)
	}
	for i := range rest {
		if q.Prune && rest[i].owner == q.Owner {
			steps = append(steps, step{
				Change{k.name, rest[i].Key, Delete, audit.Compare(rest[i].Fields, nil)}, "", nil, rest[i],
			})
		}
	}
	return steps
}

func describeOwner(owner string) string {
	if owner == "" {
		return "was made by hand: adopt it, or write it as it is"
	}
	return fmt.Sprintf("is managed by %q: adopt it, or write it as it is", owner)
}

// optional returns a text, or nil if it is empty.
func optional(s string) audit.Value {
	if s == "" {
		return nil
	}
	return audit.Text(s)
}

// match returns for each object of a file the stored one that it describes, or nil, and the
// other stored ones. Of several with its key that is an equal one, or else one of the owner.
func match(wanted []item, stored []object, owner string) (pairs, rest []*object) {
	pairs = make([]*object, len(wanted))
	byKey := map[string][]*object{}
	for i := range stored {
		byKey[stored[i].Key] = append(byKey[stored[i].Key], &stored[i])
	}
	for _, fits := range []func(w *item, s *object) bool{
		func(w *item, s *object) bool { return s.owner == owner && w.equals(s) },
		func(w *item, s *object) bool { return w.equals(s) },
		func(_ *item, s *object) bool { return s.owner == owner },
		func(*item, *object) bool { return true },
	} {
		for i := range wanted {
			w, free := &wanted[i], byKey[wanted[i].Key]
			n := slices.IndexFunc(free, func(s *object) bool { return pairs[i] == nil && fits(w, s) })
			if n >= 0 {
				pairs[i] = free[n]
				byKey[w.Key] = slices.Delete(free, n, n+1)
			}
		}
	}
	for i := range stored {
		if slices.Contains(byKey[stored[i].Key], &stored[i]) {
			rest = append(rest, &stored[i])
		}
	}
	return pairs, rest
}

// decodeList returns the objects of a list. It adds what is wrong to found, and references to what
// does not exist to broken.
func (k *kind) decodeList(ctx context.Context, l list, found, broken *problems) (items []item, err error) {
	known := map[string][]int{} // the items with a key
	for i := range l.nodes {
		w, before := item{path: fmt.Sprintf("%s[%d]", l.path, i), node: &l.nodes[i]}, len(*found)
		values := readFields(w.node, w.path, k.fields, found)
		if len(*found) > before {
			continue
		}
		w.object, err = k.decode(ctx, values)
		switch f, _ := fault.As(err); {
		case err == nil:
		case f == nil || f.Kind != fault.Invalid:
			return nil, err
		default:
			path, at := placeOf(w.node, w.path, f.Field)
			if f.Code == fault.RuleViolated {
				broken.add(at, path, "is wrong: %s", f.Message)
			} else {
				found.add(at, path, "is wrong: %s", f.Message)
			}
			continue
		}
		for _, n := range known[w.Key] {
			if !k.alike || w.equals(&items[n].object) {
				found.add(w.node.Position, w.path, "is the %s %q, which is %s already", k.name, clip(w.Key), items[n].path)
			}
		}
		known[w.Key] = append(known[w.Key], len(items))
		items = append(items, w)
	}
	return items, nil
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
	return steps, cmp.Or(found.err(fault.Invalid, fault.ValidationError), conflicts.err(fault.Conflict, ""), //nolint:wrapcheck // they are faults
		broken.err(fault.Invalid, fault.RuleViolated))
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
