package authrecords

import (
	"context"
	"fmt"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// SecretKey is a root secret that is not in the database; empty without one.
type SecretKey string

// NewRootSecret returns the key if it is set, else a secret that all instances share in the
// database.
func NewRootSecret(
	ctx context.Context, key SecretKey, ring authstore.KeyRing, e secrets.Entropy,
) (auth.RootSecret, error) {
	if key != "" {
		return auth.RootSecret(key), nil
	}
	candidate := make([]byte, 32)
	e.Fill(candidate)
	secret, err := ring.RootSecret(ctx, candidate)
	if err != nil {
		return nil, fmt.Errorf("root secret: %w", err)
	}
	return secret, nil
}
