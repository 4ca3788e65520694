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

// signedIn lets a request pass that bears the token of a living session, whose
// trust level admits what needs the level given (authentication document,
// section Authentication, 2). Both are checked before anything else about the
// request is.
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

// pathID returns the id of the path (authentication document: a UUID).
func pathID[ID ~string](c *fiber.Ctx) (ID, error) {
	return auth.ParseUUID[ID]("id", strings.Clone(c.Params("id")))
}
