package registryapi

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
)

// Reader reads the registry. *browse.Browser is one; the errors are documented
// there.
type Reader interface {
	List(ctx context.Context, q browse.Query) (browse.Page, error)
	Versions(ctx context.Context, serverName, includeDeleted string) (browse.History, error)
	Version(ctx context.Context, serverName, version, includeDeleted string) (registry.Record, error)
}

const includeDeleted = "include_deleted"

func (a *API) list(c *fiber.Ctx) error {
	p, err := a.reader.List(c.UserContext(), browse.Query{
		Cursor: query(c, "cursor"), Limit: query(c, "limit"), Search: query(c, "search"),
		UpdatedSince: timeQuery(c, "updated_since"), Version: query(c, versionParam), IncludeDeleted: query(c, includeDeleted),
	})
	if err != nil {
		return err
	}
	return send(c, func(b []byte) []byte { return appendList(b, p.Records, p.NextCursor) })
}

func (a *API) versions(c *fiber.Ctx) error {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return err
	}
	history, err := a.reader.Versions(c.UserContext(), name, query(c, includeDeleted))
	switch {
	case err != nil:
		return err
	case history.Long != nil:
		return a.sendLong(c, history.Long)
	}
	return send(c, func(b []byte) []byte { return appendList(b, history.Records, "") })
}

func (a *API) version(c *fiber.Ctx) error {
	t, err := target(c)
	if err != nil {
		return err
	}
	record, err := a.reader.Version(c.UserContext(), t.Name, t.Version, query(c, includeDeleted))
	return answer(c, record, err)
}

// query returns a copy of a parameter of the query.
func query(c *fiber.Ctx, name string) string { return strings.Clone(c.Query(name)) }

// timeQuery returns a copy of a parameter that is a time. The plus of its
// offset need not be escaped: a URL may hold it as it is (RFC 3986, 3.4), and
// it has arrived as a blank then, where no time has one.
func timeQuery(c *fiber.Ctx, name string) string {
	s := query(c, name)
	if at := len(s) - len("+00:00"); at >= 0 && s[at] == ' ' {
		return s[:at] + "+" + s[at+1:]
	}
	return s
}
