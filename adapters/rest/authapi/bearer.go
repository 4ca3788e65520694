package authapi

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/access"
)

// Access tells who an access token stands for. *access.Checker is one.
type Access interface {
	Check(ctx context.Context, t auth.AccessToken) (auth.Session, error)
}

// signedIn calls handle for a request with the access token of a living session whose trust level
// admits the given one (contract ). Both are checked before anything else about the
// request.
func (a *API) signedIn(level auth.TrustLevel, handle func(*fiber.Ctx, auth.Session) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s, err := a.access.Check(c.UserContext(), auth.AccessToken(rest.BearerToken(c)))
		if err != nil {
			return err
		}
		if err := access.Require(s, level); err != nil {
			return err
		}
		return handle(c, s)
	}
}

// pathID returns the id in the path, which must be a UUID (contract A-1).
func pathID[ID ~string](c *fiber.Ctx) (ID, error) {
	return auth.ParseUUID[ID]("id", strings.Clone(c.Params("id")))
}
