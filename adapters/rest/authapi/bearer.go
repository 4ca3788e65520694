package authapi

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/auth"
)

// Access returns the session of an access token, with an error if it is not at least at a trust level.
// *access.Checker implements it.
type Access interface {
	CheckLevel(ctx context.Context, t auth.AccessToken, level auth.TrustLevel) (auth.Session, error)
}

// Refusals records acts that were refused because of the trust level of a session, and returns the
// cause. *audit.Refusals implements it.
type Refusals interface {
	LowTrust(ctx context.Context, caller auth.Session, operation string, cause error) error
}

// requireSession returns a handler that calls handle if the request has the access token of an
// active session with at least the trust level (contract ). It checks both before
// everything else in the request.
func (a *API) requireSession(level auth.TrustLevel, handle func(*fiber.Ctx, auth.Session) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		s, err := a.access.CheckLevel(c.UserContext(), auth.AccessToken(rest.BearerToken(c)), level)
		if err == nil {
			err = handle(c, s)
		}
		if err != nil {
			return a.refusals.LowTrust(c.UserContext(), s, rest.Operation(c), err)
		}
		return nil
	}
}

// pathID returns the id in the path. It returns an error if the id is not a UUID (contract A-1).
func pathID[ID ~string](c *fiber.Ctx) (ID, error) {
	return auth.ParseUUID[ID]("id", strings.Clone(c.Params("id")))
}
