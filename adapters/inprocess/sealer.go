package inprocess

import (
	"fmt"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Sealer implements [secrets.Sealer] with a key that is derived from the root secret, as the
// secrets of authenticators are sealed. It is safe for concurrent use.
type Sealer struct {
	key     auth.Key
	entropy secrets.Entropy
}

var _ secrets.Sealer = (*Sealer)(nil)

// NewSealer returns the sealer of the secrets of webhooks. It returns the error of
// [auth.RootSecret.Derive].
func NewSealer(root auth.RootSecret, e secrets.Entropy) (*Sealer, error) {
	key, err := root.Derive("webhook secrets")
	return &Sealer{key, e}, err
}

// Seal implements [secrets.Sealer].
func (s *Sealer) Seal(secret []byte, about string) ([]byte, error) {
	return s.key.Seal(secrets.NewNonce(s.entropy), secret, about)
}

// Open implements [secrets.Sealer].
func (s *Sealer) Open(sealed []byte, about string) ([]byte, error) {
	return s.key.Open(sealed, about)
}

// NewCursors returns a sealer of page cursors that is the same on all instances.
func NewCursors(root auth.RootSecret) (*page.Sealer, error) {
	key, err := root.Derive("page cursors")
	if err != nil {
		return nil, fmt.Errorf("SECRET_KEY: %w", err)
	}
	sum := key.Sum("registry")
	return page.NewSealer(sum[:]), nil
}
