package viewing

import (
	"cmp"
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// OperatorPorts are the dependencies of an Operator. All fields are required.
type OperatorPorts struct {
	Transactions transaction.Runner
	Views        registrystore.Views
	Recorder     authority.Recorder
	Events       *announce.Recorder
	Clock        clock.Clock
	Entropy      secrets.Entropy
}

// Operator adds, lists and removes views and their tokens for operator commands. Each method
// returns fault.Unavailable when the database fails. It is safe for concurrent use.
type Operator struct{ ports OperatorPorts }

// NewOperator returns an operator.
func NewOperator(p OperatorPorts) *Operator { return &Operator{p} }

// Put adds a view, or replaces the one with its name, whose tokens stay, and reports whether it
// added one. It returns the error of check, and fault.Invalid, with the name of the field, for a wrong draft
// or when there are too many views.
func (o *Operator) Put(
	ctx context.Context, d view.Draft, check registry.Check[view.View],
) (v view.View, created bool, err error) {
	if v, err = view.New(d); err != nil {
		return view.View{}, false, err
	}
	err = o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		existing, err := o.ports.Views.List(ctx)
		if err != nil {
			return err
		}
		current := find(existing, v.Name)
		if err := check.Permit(current); err != nil {
			return err
		}
		if created = current == nil; created && len(existing) >= view.Kind.Most {
			return fault.Violated("there are %d views already: remove some", len(existing))
		}
		if !created {
			v.ManagedBy = cmp.Or(d.ManagedBy, current.ManagedBy)
		}
		return o.store(ctx, current, v)
	})
	return v, created, err
}

// store stores a view and records the change, if there is one.
func (o *Operator) store(ctx context.Context, current *view.View, v view.View) error {
	var before *audit.Object
	if current != nil {
		o := current.Object()
		before = &o
	}
	after := v.Object()
	change, differs := audit.Operate(audit.RegistryChange, "view", before, &after)
	if !differs {
		return nil
	}
	if err := o.ports.Views.Put(ctx, v); err != nil {
		return err
	}
	if err := o.ports.Events.RecordView(ctx, string(v.Name)); err != nil {
		return err
	}
	return o.record(ctx, change.Action, v.Name, "", change.Details)
}

// List returns all views, ordered by name.
func (o *Operator) List(ctx context.Context) ([]view.View, error) { return o.ports.Views.List(ctx) }

// Find returns the view with a name, or that of all servers. It returns fault.NotFound if there is
// none.
func (o *Operator) Find(ctx context.Context, name string) (view.View, error) {
	if name == view.All {
		return view.OfAll(), nil
	}
	all, err := o.ports.Views.List(ctx)
	if err != nil {
		return view.View{}, err
	}
	if v := find(all, view.Name(name)); v != nil {
		return *v, nil
	}
	return view.View{}, errMissing(view.Name(name))
}

// Objects returns the views as objects of any kind.
func (o *Operator) Objects() management.Objects {
	return managing.Of[view.View]{
		Of:   &view.Kind,
		From: func(f audit.Details) (view.View, error) { return view.New(view.ReadDraft(f)) },
		Show: func(v *view.View) management.Object {
			return management.Object{
				Object: audit.Object{Kind: view.Kind.Name, Key: string(v.Name), Fields: v.Fields()}, Owner: v.ManagedBy,
			}
		},
		All: managing.PageOf(o.List, func(v *view.View) string { return string(v.Name) }), One: o.Find,
		Store: func(ctx context.Context, c management.Change, check func(*view.View) error) (view.View, bool, error) {
			d := view.ReadDraft(c.Fields)
			d.ManagedBy = c.Owner
			return o.Put(ctx, d, check)
		},
		Drop: func(ctx context.Context, key string, _ management.Change, check func(*view.View) error) error {
			return o.Remove(ctx, view.Name(key), check)
		},
	}
}

// Remove removes a view with its tokens. It returns fault.NotFound if no view has the name, and
// the error of check.
func (o *Operator) Remove(ctx context.Context, name view.Name, check registry.Check[view.View]) error {
	return o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		existing, err := o.ports.Views.List(ctx)
		if err != nil {
			return err
		}
		current := find(existing, name)
		if current == nil {
			return errMissing(name)
		}
		if err := check.Permit(current); err != nil {
			return err
		}
		if err := o.ports.Views.Remove(ctx, name); err != nil {
			return err
		}
		if err := o.ports.Events.RecordView(ctx, string(name)); err != nil {
			return err
		}
		return o.record(ctx, "view_remove", name, "", audit.About(audit.Details{}, current.Object()))
	})
}

// AddToken makes a token of a view and returns it in clear. Only its hash is stored. It returns
// fault.Invalid for a wrong name of a token, fault.NotFound if the view does not exist, and
// fault.Conflict if it has a token with that name. Too many tokens are fault.Invalid.
func (o *Operator) AddToken(ctx context.Context, v view.Name, name string) (view.Secret, error) {
	tokenName, err := view.ParseTokenName(name)
	if err != nil {
		return "", err
	}
	var random [32]byte
	o.ports.Entropy.Fill(random[:])
	secret := view.NewSecret(random)
	err = o.ports.Transactions.Atomically(transaction.Exclusive(ctx), func(ctx context.Context) error {
		existing, err := o.ports.Views.Tokens(ctx)
		if err != nil {
			return err
		}
		if n := len(tokensOf(existing, v)); n >= view.MaxTokens {
			return fault.Violated("the view %s has %d tokens already: remove some", v, n)
		}
		t := view.Token{View: v, Name: tokenName, Hash: secret.Hash(), CreatedAt: o.ports.Clock.Now()}
		switch err := o.ports.Views.AddToken(ctx, t); {
		case fault.Is(err, fault.NotFound):
			return errMissing(v)
		case fault.Is(err, fault.Conflict):
			return fault.Newf(fault.Conflict,
				"the view %s has a token %s already: remove it first, or choose another name", v, tokenName)
		case err != nil:
			return err
		}
		return o.record(ctx, "view_token_add", v, tokenName, tokenDetails(v, tokenName))
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Tokens returns the tokens of a view, ordered by name. It returns fault.NotFound if there is no
// view with the name.
func (o *Operator) Tokens(ctx context.Context, v view.Name) ([]view.Token, error) {
	if _, err := o.Find(ctx, string(v)); err != nil {
		return nil, err
	}
	all, err := o.ports.Views.Tokens(ctx)
	return tokensOf(all, v), err
}

// RemoveToken removes a token of a view. It returns fault.NotFound if no token of the view has the
// name.
func (o *Operator) RemoveToken(ctx context.Context, v view.Name, name view.TokenName) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		switch err := o.ports.Views.RemoveToken(ctx, v, name); {
		case fault.Is(err, fault.NotFound):
			return fault.Newf(fault.NotFound, "the view %.60q has no token %.60q", string(v), string(name))
		case err != nil:
			return err
		}
		return o.record(ctx, "view_token_remove", v, name, tokenDetails(v, name))
	})
}

func tokenDetails(v view.Name, token view.TokenName) audit.Details {
	return audit.About(audit.Details{}, audit.Object{Kind: "viewToken", Key: string(v) + " " + string(token)})
}

func (o *Operator) record(
	ctx context.Context, action audit.Action, v view.Name, token view.TokenName, details audit.Details,
) error {
	details["view"] = audit.Text(v)
	details.Set("token", string(token))
	return o.ports.Recorder.RecordChanges(ctx, registry.NewOperatorChange(action, details))
}

func find(all []view.View, name view.Name) *view.View {
	return registry.FindIn(all, func(v *view.View) bool { return v.Name == name })
}

func errMissing(name view.Name) error {
	return fault.Newf(fault.NotFound, "there is no view with the name %.60q", string(name))
}

func tokensOf(all []view.Token, v view.Name) []view.Token {
	return slices.DeleteFunc(slices.Clone(all), func(t view.Token) bool { return t.View != v })
}

// Collections lists, stores and removes the collections of servers, for operators.
type Collections = managing.Operator[view.CollectionName, view.Collection]

// NewCollections returns Collections.
func NewCollections(
	t transaction.Runner, s management.Store[view.CollectionName, view.Collection], r authority.Recorder,
) *Collections {
	return managing.New(managing.Description[view.CollectionName, view.Collection]{
		Kind: &view.CollectionKind, Parse: view.ParseCollection,
		Show: func(c *view.Collection) management.Object {
			return management.Object{
				Object: audit.Object{Kind: view.CollectionKind.Name, Key: string(c.Name), Fields: c.Fields()}, Owner: c.ManagedBy,
			}
		},
		Key:   func(c *view.Collection) view.CollectionName { return c.Name },
		Owner: func(c *view.Collection) *string { return &c.ManagedBy },
	}, managing.Ports[view.CollectionName, view.Collection]{Transactions: t, Store: s, Recorder: r})
}
