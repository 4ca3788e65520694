// Package curate holds the use cases by which an operator changes which methods
// the listing shows. Every change leaves its trace in the audit log. What makes
// a method is the model's rule, and what a file of methods holds its reader's.
package curate

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// What the audit log calls a change.
const (
	actionAdd    = "add"
	actionImport = "import" // added or replaced by one
	actionRemove = "remove" // also by an import that replaces all
)

// Ports is what changing methods asks of the world. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Methods      methodstore.Store
	Trail        authority.Methods
}

// Operator changes the methods. It is not reachable from the API; who may use it
// is whoever may run the operator commands. It is safe for concurrent use.
type Operator struct{ ports Ports }

// New returns an operator.
func New(p Ports) *Operator { return &Operator{p} }

// Add lists one method more, from the next request on. fault.Conflict when
// another one has its id or path, fault.Unavailable when the database is away.
func (o *Operator) Add(ctx context.Context, m catalogue.Method) error {
	return o.change(ctx, actionAdd, func(ctx context.Context) error { return o.ports.Methods.Add(ctx, m) })
}

// Remove takes a method out of the listing, from the next request on.
// fault.NotFound when there is none of the id, fault.Unavailable when the
// database is away.
func (o *Operator) Remove(ctx context.Context, id catalogue.MethodID) error {
	return o.change(ctx, actionRemove, func(ctx context.Context) error { return o.ports.Methods.Remove(ctx, id) })
}

// Import lists methods, in the place of those of the same id; with replace, no
// others. All are taken or none: fault.Conflict when a path is another method's,
// fault.Unavailable when the database is away. The audit log is told of those
// that it changed.
func (o *Operator) Import(ctx context.Context, methods []catalogue.Method, replace bool) error {
	return o.change(ctx, actionImport, func(ctx context.Context) error { return o.ports.Methods.Put(ctx, methods, replace) })
}

// change does something to the methods and tells the audit log what that made
// of them, both or neither.
func (o *Operator) change(ctx context.Context, action string, do func(context.Context) error) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		before, err := o.ports.Methods.List(ctx)
		if err != nil {
			return err
		}
		if err := do(ctx); err != nil {
			return err
		}
		after, err := o.ports.Methods.List(ctx)
		if err != nil {
			return err
		}
		changes := append(missing(actionRemove, before, after), altered(action, before, after)...)
		if len(changes) == 0 {
			return nil
		}
		return o.ports.Trail.RecordMethods(ctx, changes...)
	})
}

// missing tells of the methods whose ids are there no more.
func missing(action string, before, after []catalogue.Method) []authority.MethodChange {
	now := byID(after)
	var changes []authority.MethodChange
	for i := range before {
		if _, there := now[before[i].ID]; !there {
			changes = append(changes, changeOf(action, &before[i]))
		}
	}
	return changes
}

// altered tells of the methods that are new or other than they were.
func altered(action string, before, after []catalogue.Method) []authority.MethodChange {
	then := byID(before)
	var changes []authority.MethodChange
	for i := range after {
		if m, there := then[after[i].ID]; !there || !same(m, &after[i]) {
			changes = append(changes, changeOf(action, &after[i]))
		}
	}
	return changes
}

func byID(methods []catalogue.Method) map[catalogue.MethodID]*catalogue.Method {
	index := make(map[catalogue.MethodID]*catalogue.Method, len(methods))
	for i := range methods {
		index[methods[i].ID] = &methods[i]
	}
	return index
}

func same(a, b *catalogue.Method) bool {
	return a.Path == b.Path && a.ServiceID == b.ServiceID && a.ServiceName == b.ServiceName && slices.Equal(a.Parameters, b.Parameters)
}

func changeOf(action string, m *catalogue.Method) authority.MethodChange {
	return authority.MethodChange{Action: action, ID: int(m.ID), Path: m.Path, Service: m.ServiceName}
}
