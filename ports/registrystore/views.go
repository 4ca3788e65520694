package registrystore

import (
	"context"

	"github.com/tollgate-dev/tollgate/core/registry/view"
)

// Views stores the views of the registry and the hashes of their tokens. Its methods join the
// transaction that the context carries. A change is visible to the next call on every instance, and
// changes Revision.Views.
type Views interface {
	// Put stores a view, in place of the one with its name, whose tokens stay.
	Put(ctx context.Context, v view.View) error
	// Remove deletes a view with its tokens, or returns fault.NotFound.
	Remove(ctx context.Context, name view.Name) error
	// List returns all views, ordered by the bytes of the name.
	List(ctx context.Context) ([]view.View, error)
	// AddToken stores a token. It returns fault.NotFound if there is no view with its View, and
	// fault.Conflict if the view has a token with its Name, or any view one with its Hash. Times
	// are kept in UTC with microseconds.
	AddToken(ctx context.Context, t view.Token) error
	// RemoveToken deletes a token of a view, or returns fault.NotFound.
	RemoveToken(ctx context.Context, v view.Name, name view.TokenName) error
	// Tokens returns the tokens of all views, ordered by the bytes of the view and then of the
	// name.
	Tokens(ctx context.Context) ([]view.Token, error)
}
