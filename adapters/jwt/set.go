package jwt

import (
	"github.com/google/wire"

	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

var Set = wire.NewSet(
	Open, wire.Bind(new(secrets.TokenSigner), new(*Issuer)), wire.Bind(new(secrets.TokenVerifier), new(*Issuer)),
	wire.Bind(new(authstore.PublishedKeys), new(*Issuer)),
)
