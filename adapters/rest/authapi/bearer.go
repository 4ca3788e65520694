package authapi

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// Access returns the session of an access token if it is at least at a trust level.
// *access.Checker implements it.
type Access interface {
	CheckLevel(ctx context.Context, t auth.AccessToken, level auth.TrustLevel) (auth.Session, error)
}

// requireSession returns a handler that calls handle if the request has the access token of an
// active session with at least the trust level (contract ). It checks both before
// everything else in the request.
func (a *API) requireSession(level auth.TrustLevel, handle func(*fiber.Ctx, auth.Session) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s, err := a.access.CheckLevel(c.UserContext(), auth.AccessToken(rest.BearerToken(c)), level)
		if err != nil {
			return err
		}
		return handle(c, s)
	}
}

// pathID returns the id in the path. It returns an error if the id is not a UUID (contract A-1).
func pathID[ID ~string](c *fiber.Ctx) (ID, error) {
	return auth.ParseUUID[ID]("id", strings.Clone(c.Params("id")))
}
