package authapi

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// requireSession returns a handler that calls handle if the request has the access token of an
// active session with at least the trust level (contract ). It checks both before
// everything else in the request.
func (a *API) requireSession(level auth.TrustLevel, handle func(*fiber.Ctx, auth.Session) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s, err := a.use.Access.CheckLevel(c.UserContext(), auth.AccessToken(rest.BearerToken(c)), level)
		if err == nil {
			err = handle(c, s)
		}
		if err != nil {
			return a.use.Refusals.LowTrust(c.UserContext(), s, rest.Operation(c), err)
		}
		return nil
	}
}

// pathID returns the id in the path. It returns an error if the id is not a UUID (contract A-1).
func pathID[ID ~string](c *fiber.Ctx) (ID, error) {
	return auth.ParseUUID[ID]("id", strings.Clone(c.Params("id")))
}
