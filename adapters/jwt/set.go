package jwt

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Set provides an Issuer as the signer and the verifier of access tokens, and its published keys.
var Set = wire.NewSet(
	Open, wire.Bind(new(secrets.TokenSigner), new(*Issuer)), wire.Bind(new(secrets.TokenVerifier), new(*Issuer)),
	wire.Bind(new(authstore.PublishedKeys), new(*Issuer)),
)
