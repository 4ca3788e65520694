package authapi

import (
	"encoding/base64"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// jwkSet is a JWK Set (RFC 7517, section 5) of Ed25519 keys (RFC 8037).
type jwkSet struct {
	Keys []jwk `json:"keys"`
}

type jwk struct {
	KeyType   string          `json:"kty"`
	Curve     string          `json:"crv"`
	X         string          `json:"x"`
	ID        authstore.KeyID `json:"kid"`
	Algorithm string          `json:"alg"`
	Use       string          `json:"use"`
}

// listKeys sends the public keys of access tokens.
func (a *API) listKeys(c *fiber.Ctx) error {
	keys, err := a.use.Keys.PublicKeys(c.UserContext())
	if err != nil {
		return err
	}
	set := jwkSet{Keys: make([]jwk, 0, len(keys))}
	for _, k := range keys {
		set.Keys = append(set.Keys, jwk{
			KeyType: "OKP", Curve: "Ed25519", X: base64.RawURLEncoding.EncodeToString(k.Key),
			ID: k.ID, Algorithm: "EdDSA", Use: "sig",
		})
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age=60") // so that clients soon get a new key
	return c.JSON(set)
}
