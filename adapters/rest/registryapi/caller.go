package registryapi

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// callers finds out who sends requests. It is how all parts of the registry's API keep the order of
// errors: 401, then 400 for what was sent, then 403 for what the use case does not permit.
type callers struct{ authority authority.Authority }

// handler handles a request of a caller.
type handler func(c *fiber.Ctx, who authority.Caller) error

// identify returns the caller of a request by its bearer token.
func (i callers) identify(c *fiber.Ctx) (authority.Caller, error) {
	return i.authority.Identify(c.UserContext(), rest.BearerToken(c), rest.Address(c))
}

// known returns a handler that identifies the caller before anything else.
func (i callers) known(handle handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		who, err := i.identify(c)
		if err != nil {
			return err
		}
		return handle(c, who)
	}
}

// only returns a handler that also refuses callers who do not pass a check before it reads what
// they sent. The use case makes the same check.
func (i callers) only(check func(authority.Caller) (registry.Holder, error), handle handler) fiber.Handler {
	return i.known(func(c *fiber.Ctx, who authority.Caller) error {
		if _, err := check(who); err != nil {
			return err
		}
		return handle(c, who)
	})
}
