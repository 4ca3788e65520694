package inprocess

import (
	"github.com/tollgate-dev/tollgate/core/auth"
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
