// Package declaring holds the use cases of the state in a file: what an operator declares of
// grants, service accounts, policies, views, mirrors, webhooks, review rules, providers and access
// rules is compared with
// what is stored and applied in one transaction. It knows no format of files, and changes objects
// by the use cases of their kinds.
package declaring

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

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
	rules := each.MapRef(items, func(i *item) audit.Object { return i.Object })
	return rules, found.err(fault.Invalid, fault.ValidationError)
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
		return each.MapRef(states, func(s *registry.AppliedState) Applied { return Applied{*s, driftOf(s, stored)} }), nil
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
