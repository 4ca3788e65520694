package registryapi

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browse"
)

// Reader reads the registry. *browse.Browser implements it and documents the errors.
type Reader interface {
	List(ctx context.Context, q browse.Query) (browse.Page, error)
	Versions(ctx context.Context, serverName, includeDeleted string) (browse.History, error)
	Version(ctx context.Context, serverName, version, includeDeleted string) (registry.Record, error)
}

const deletedParam = "include_deleted"

func (a *API) listServers(c *fiber.Ctx) error {
	p, err := a.reader.List(c.UserContext(), browse.Query{
		Cursor: queryParam(c, "cursor"), Limit: queryParam(c, "limit"), Search: queryParam(c, "search"),
		UpdatedSince: timeParam(c, "updated_since"), Version: queryParam(c, versionParam), IncludeDeleted: queryParam(c, deletedParam),
	})
	if err != nil {
		return err
	}
	return sendJSON(c, func(b []byte) []byte { return appendList(b, p.Records, p.NextCursor) })
}

func (a *API) listVersions(c *fiber.Ctx) error {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return err
	}
	history, err := a.reader.Versions(c.UserContext(), name, queryParam(c, deletedParam))
	switch {
	case err != nil:
		return err
	case history.Long != nil:
		return a.streamVersions(c, history.Long)
	}
	return sendJSON(c, func(b []byte) []byte { return appendList(b, history.Records, "") })
}

func (a *API) getVersion(c *fiber.Ctx) error {
	t, err := readTarget(c)
	if err != nil {
		return err
	}
	record, err := a.reader.Version(c.UserContext(), t.Name, t.Version, queryParam(c, deletedParam))
	return sendRecord(c, record, err)
}

// queryParam returns a copy of a query parameter.
func queryParam(c *fiber.Ctx, name string) string { return strings.Clone(c.Query(name)) }

// timeParam returns a copy of a query parameter that is a time. A client may send the plus of the
// offset unescaped (RFC 3986, 3.4). The query parser turns it into a space, which a time never
// contains; timeParam restores it.
func timeParam(c *fiber.Ctx, name string) string {
	s := queryParam(c, name)
	if at := len(s) - len("+00:00"); at >= 0 && s[at] == ' ' {
		return s[:at] + "+" + s[at+1:]
	}
	return s
}
