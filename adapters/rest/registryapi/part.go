package registryapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// part has the methods of rest.Part that are the same for the parts that have only records, and no
// server documents.
type part struct {
	name  string
	paths []string // of the part, without the prefix; those below them belong to it too

	resource Resource
}

func (p part) Name() string { return p.name }

func (p part) Owns(path string) bool {
	path = trimPrefix(path)
	for _, owned := range p.paths {
		if path == owned || strings.HasPrefix(path, strings.TrimSuffix(owned, "/")+"/") {
			return true
		}
	}
	return false
}

// Scope implements rest.Part. The paths belong to the registry.
func (part) Scope(string, string) throttle.Scope { return throttle.RegistryAddress }

func (part) MaxBody(string, string) int { return rest.MaxRecordBody }

// WriteFault writes {"error": message}.
func (p part) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	p.resource.challenge(c, f, "")
	return sendUncached(c, c.Response().StatusCode(), map[string]string{"error": f.Message})
}

// sendUncached sends a JSON value that no cache may keep.
func sendUncached(c *fiber.Ctx, status int, value any) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(status).JSON(value)
}

// metadata is the metadata of a list of records, like that of the list of servers.
type metadata struct {
	NextCursor string `json:"nextCursor,omitempty"`
	Count      int    `json:"count"`
}

// encodeRecord returns a record as JSON, for events. what names it in errors.
func encodeRecord(record any, what string) ([]byte, error) {
	b, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("write %s as JSON: %w", what, err)
	}
	return b, nil
}

// describePerson returns the id of a person, or "operator" for an empty id: operator commands have
// none.
func describePerson(id registry.Holder) string {
	return cmp.Or(string(id), "operator")
}

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
