// Package manage holds the use cases of operators that change the methods of the listing. Every
// change is recorded in the audit log. Package catalogue has the rules of a method; the reader of a
// file of methods is an adapter.
package manage

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// The names of changes in the audit log.
const (
	actionAdd    = "add"
	actionImport = "import" // added or replaced by an import
	actionRemove = "remove" // also removed by an import that replaces all methods
)

// Ports are the dependencies of an Operator. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Methods      methodstore.Store
	Recorder     authority.Recorder
}

// Operator changes the methods. The API does not expose it; everyone who may run the operator
// commands may use it. It is safe for concurrent use.
type Operator struct{ ports Ports }

// New returns an operator.
func New(p Ports) *Operator { return &Operator{p} }

// Add adds a method to the listing, from the next request on. It returns fault.Conflict when
// another method has its id or path, fault.Unavailable when the database fails.
func (o *Operator) Add(ctx context.Context, m catalogue.Method) error {
	return o.changeMethods(ctx, actionAdd, func(ctx context.Context) error { return o.ports.Methods.Add(ctx, m) })
}

// Remove removes a method from the listing, from the next request on. It returns fault.NotFound
// when no method has the id, fault.Unavailable when the database fails.
func (o *Operator) Remove(ctx context.Context, id catalogue.MethodID) error {
	return o.changeMethods(ctx, actionRemove, func(ctx context.Context) error {
		return o.ports.Methods.Remove(ctx, id)
	})
}

// Import adds methods and replaces those with the same ids; with replace, it removes all others. It
// adds all of them or makes no change. It returns fault.Conflict when another method has one of the
// paths, fault.Unavailable when the database fails. Only the methods that changed are recorded in
// the audit log.
func (o *Operator) Import(ctx context.Context, methods []catalogue.Method, replace bool) error {
	return o.changeMethods(ctx, actionImport, func(ctx context.Context) error {
		return o.ports.Methods.Put(ctx, methods, replace)
	})
}

// Replace replaces all methods, as Import does. check, which may be nil, is called with the stored
// methods in the transaction; its error ends the change.
func (o *Operator) Replace(
	ctx context.Context, methods []catalogue.Method, check func(*[]catalogue.Method) error,
) error {
	return o.changeMethods(transaction.Exclusive(ctx), actionImport, func(ctx context.Context) error {
		if check != nil {
			stored, err := o.ports.Methods.List(ctx)
			if err == nil {
				err = check(&stored)
			}
			if err != nil {
				return err
			}
		}
		return o.ports.Methods.Put(ctx, methods, true)
	})
}

// changeMethods calls do and records in the audit log what it changed, in one transaction.
func (o *Operator) changeMethods(ctx context.Context, action audit.Action, do func(context.Context) error) error {
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
		changes := append(removedMethods(actionRemove, before, after), changedMethods(action, before, after)...)
		if len(changes) == 0 {
			return nil
		}
		return o.ports.Recorder.RecordChanges(ctx, changes...)
	})
}

// removedMethods returns a change for each method of before that is not in after.
func removedMethods(action audit.Action, before, after []catalogue.Method) []audit.Change {
	now := indexByID(after)
	var changes []audit.Change
	for i := range before {
		if _, there := now[before[i].ID]; !there {
			changes = append(changes, newChange(action, &before[i]))
		}
	}
	return changes
}

// changedMethods returns a change for each method of after that is new or different.
func changedMethods(action audit.Action, before, after []catalogue.Method) []audit.Change {
	then := indexByID(before)
	var changes []audit.Change
	for i := range after {
		if m, there := then[after[i].ID]; !there || !equalMethods(m, &after[i]) {
			changes = append(changes, newChange(action, &after[i]))
		}
	}
	return changes
}

func indexByID(methods []catalogue.Method) map[catalogue.MethodID]*catalogue.Method {
	index := make(map[catalogue.MethodID]*catalogue.Method, len(methods))
	for i := range methods {
		index[methods[i].ID] = &methods[i]
	}
	return index
}

func equalMethods(a, b *catalogue.Method) bool {
	return a.Path == b.Path && a.ServiceID == b.ServiceID && a.ServiceName == b.ServiceName &&
		slices.Equal(a.Parameters, b.Parameters)
}

func newChange(action audit.Action, m *catalogue.Method) audit.Change {
	return audit.Change{Category: audit.MethodsChange, Action: action, ByOperator: true, Details: audit.Details{
		"methodId": audit.Number(m.ID), "path": audit.Text(m.Path), "service": audit.Text(m.ServiceName),
		audit.DetailKind: audit.Text("method"), audit.DetailKey: audit.Text(m.Path),
	}}
}
