// Package ruling has the use cases of the rules by which calls of servers are decided: operators
// list, store and remove them. What a rule means is in package access.
package ruling

import (
	"cmp"
	"context"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Ports are the dependencies of an Operator. All fields are required.
type Ports struct {
	Transactions transaction.Runner
	Rules        accessstore.Rules
	Recorder     authority.Recorder
}

// Operator lists, stores and removes rules for operators. Each method returns fault.Unavailable when
// the database fails. It is safe for concurrent use.
type Operator struct{ ports Ports }

// New returns an operator.
func New(p Ports) *Operator { return &Operator{p} }

// List returns at most limit rules whose names are greater than after, ordered by name.
func (o *Operator) List(ctx context.Context, after access.RuleName, limit int) ([]access.Rule, error) {
	return o.ports.Rules.List(ctx, after, limit)
}

// Get returns a rule, or fault.NotFound.
func (o *Operator) Get(ctx context.Context, name access.RuleName) (access.Rule, error) {
	r, err := o.ports.Rules.Get(ctx, name)
	if fault.Is(err, fault.NotFound) {
		err = fault.Newf(fault.NotFound, "there is no access rule with the name %.60q", string(name))
	}
	return r, err
}

// Put stores a rule in place of the one with its name, and reports whether it is new. One that is the
// same stays, without an event. The file that manages it stays the same unless r has another. It
// returns the error of check, which may be nil, and fault.Invalid for more than access.MaxRules.
func (o *Operator) Put(
	ctx context.Context, r access.Rule, check func(current *access.Rule) error,
) (stored access.Rule, created bool, err error) {
	err = o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		current, err := o.find(ctx, r.Name)
		if err == nil && check != nil {
			err = check(current)
		}
		if err != nil {
			return err
		}
		stored, created = r, current == nil
		var before *audit.Object
		if created {
			err = o.checkRoom(ctx)
		} else {
			stored.ManagedBy = cmp.Or(r.ManagedBy, current.ManagedBy)
			was := current.Object()
			before = &was
		}
		is := stored.Object()
		change, differs := audit.Operate(audit.RegistryChange, "access_rule", before, &is)
		if err != nil || !differs {
			return err
		}
		if err := o.ports.Rules.Save(ctx, stored); err != nil {
			return err
		}
		return o.ports.Recorder.RecordChanges(ctx, change)
	})
	return stored, created, err
}

// find returns the stored rule with a name; nil without one.
func (o *Operator) find(ctx context.Context, name access.RuleName) (*access.Rule, error) {
	r, err := o.ports.Rules.Get(ctx, name)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &r, nil
}

func (o *Operator) checkRoom(ctx context.Context) error {
	n, err := o.ports.Rules.Count(ctx)
	if err == nil && n >= access.MaxRules {
		err = fault.Violated("there are %d access rules already: remove some", n)
	}
	return err
}

// Remove removes a rule. It returns fault.NotFound if no rule has the name, and the error of check,
// which may be nil.
func (o *Operator) Remove(ctx context.Context, name access.RuleName, check func(current *access.Rule) error) error {
	return o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		current, err := o.Get(ctx, name)
		if err == nil && check != nil {
			err = check(&current)
		}
		if err == nil {
			err = o.ports.Rules.Remove(ctx, name)
		}
		if err != nil {
			return err
		}
		was := current.Object()
		change, _ := audit.Operate(audit.RegistryChange, "access_rule", &was, nil)
		return o.ports.Recorder.RecordChanges(ctx, change)
	})
}
