package viewing

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// maxViews is the greatest number of views. It bounds what a Gate keeps in memory; parallel calls
// may exceed it by a few, as they may exceed view.MaxTokens.
const maxViews = 100

// OperatorPorts are the dependencies of an Operator. All fields are required.
type OperatorPorts struct {
	Transactions transaction.Runner
	Views        registrystore.Views
	Recorder     authority.Recorder
	Clock        clock.Clock
	Entropy      secrets.Entropy
}

// Operator adds, lists and removes views and their tokens for operator commands. Each method
// returns fault.Unavailable when the database fails. It is safe for concurrent use.
type Operator struct{ ports OperatorPorts }

// NewOperator returns an operator.
func NewOperator(p OperatorPorts) *Operator { return &Operator{p} }

// Add adds a view. It returns fault.Invalid, with the name of the field, for a wrong draft, and
// fault.Conflict when there is a view with its name or there are too many.
func (o *Operator) Add(ctx context.Context, d view.Draft) (view.View, error) {
	v, err := view.New(d)
	if err != nil {
		return view.View{}, err
	}
	return v, o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		existing, err := o.ports.Views.List(ctx)
		if err != nil {
			return err
		}
		if len(existing) >= maxViews {
			return fault.Newf(fault.Conflict, "there are %d views already: remove some", len(existing))
		}
		switch err := o.ports.Views.Add(ctx, v); {
		case fault.Is(err, fault.Conflict):
			return fault.Newf(fault.Conflict, "there is a view %s already: remove it first", v.Name)
		case err != nil:
			return err
		}
		return o.record(ctx, "view_add", v.Name, "")
	})
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
	for _, v := range all {
		if string(v.Name) == name {
			return v, nil
		}
	}
	return view.View{}, errMissing(view.Name(name))
}

// Remove removes a view with its tokens. It returns fault.NotFound if no view has the name.
func (o *Operator) Remove(ctx context.Context, name view.Name) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		switch err := o.ports.Views.Remove(ctx, name); {
		case fault.Is(err, fault.NotFound):
			return errMissing(name)
		case err != nil:
			return err
		}
		return o.record(ctx, "view_remove", name, "")
	})
}

// AddToken makes a token of a view and returns it in clear. Only its hash is stored. It returns
// fault.Invalid for a wrong name of a token, fault.NotFound if the view does not exist, and
// fault.Conflict if it has a token with that name or has too many.
func (o *Operator) AddToken(ctx context.Context, v view.Name, name string) (view.Secret, error) {
	tokenName, err := view.ParseTokenName(name)
	if err != nil {
		return "", err
	}
	var random [32]byte
	o.ports.Entropy.Fill(random[:])
	secret := view.NewSecret(random)
	err = o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		existing, err := o.ports.Views.Tokens(ctx)
		if err != nil {
			return err
		}
		if n := len(tokensOf(existing, v)); n >= view.MaxTokens {
			return fault.Newf(fault.Conflict, "the view %s has %d tokens already: remove some", v, n)
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
		return o.record(ctx, "view_token_add", v, tokenName)
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Tokens returns the tokens of a view, ordered by name. It returns fault.NotFound if there is no
// such view.
func (o *Operator) Tokens(ctx context.Context, v view.Name) ([]view.Token, error) {
	if _, err := o.Find(ctx, string(v)); err != nil {
		return nil, err
	}
	all, err := o.ports.Views.Tokens(ctx)
	return tokensOf(all, v), err
}

// RemoveToken removes a token of a view. It returns fault.NotFound if the view has none with the
// name.
func (o *Operator) RemoveToken(ctx context.Context, v view.Name, name view.TokenName) error {
	return o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		switch err := o.ports.Views.RemoveToken(ctx, v, name); {
		case fault.Is(err, fault.NotFound):
			return fault.Newf(fault.NotFound, "the view %.60q has no token %.60q", string(v), string(name))
		case err != nil:
			return err
		}
		return o.record(ctx, "view_token_remove", v, name)
	})
}

// record records a change of a view, or of a token of it.
func (o *Operator) record(ctx context.Context, action audit.Action, v view.Name, token view.TokenName) error {
	details := audit.Details{"view": audit.Text(v)}
	details.Set("token", string(token))
	return o.ports.Recorder.RecordChanges(ctx, registry.NewOperatorChange(action, details))
}

func errMissing(name view.Name) error {
	return fault.Newf(fault.NotFound, "there is no view with the name %.60q", string(name))
}

func tokensOf(all []view.Token, v view.Name) (found []view.Token) {
	for _, t := range all {
		if t.View == v {
			found = append(found, t)
		}
	}
	return found
}
