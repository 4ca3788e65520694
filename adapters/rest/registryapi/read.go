package registryapi

import (
	"context"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/allowlistjson"
	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

const deletedParam = "include_deleted"

// read is a request to read the registry: everything that the response depends on. Parameters are
// as they were sent; an empty one is absent.
type read struct {
	kind             readKind
	view             *view.View // as it was when the request came; nil for the registry itself
	name, version    string
	deleted          string
	cursor, limit    string
	search, since    string
	versionSelection string
	status           string
	packageType      string
	remote           string
	format           string
}

type readKind uint8

const (
	readList readKind = iota
	readVersions
	readVersion
	readAllowList // its format is in format
	readSnippet   // its client is in format
)

// clone returns a copy that shares no memory with the request.
func (r read) clone() read {
	for _, s := range r.texts() {
		*s = strings.Clone(*s)
	}
	return r
}

// texts returns the parameters.
func (r *read) texts() []*string {
	return []*string{
		&r.name, &r.version, &r.deleted, &r.cursor, &r.limit, &r.search, &r.since, &r.versionSelection, &r.status, &r.packageType,
		&r.remote, &r.format,
	}
}

// size returns the memory of the texts in bytes.
func (r read) size() (n int) {
	for _, s := range r.texts() {
		n += len(*s)
	}
	return n
}

// isUsual reports whether it is a first page or a latest version.
func (r read) isUsual() bool {
	switch r.kind {
	case readList:
		return r.cursor+r.search+r.since+r.status+r.packageType+r.remote == ""
	case readVersion:
		return r.version == registry.LatestAlias
	}
	return false
}

func (a *API) listServers(c *fiber.Ctx, v *view.View) error {
	return a.sendAnswer(c, read{
		kind: readList, view: v, cursor: c.Query("cursor"), limit: c.Query("limit"), search: c.Query("search"),
		since: timeParam(c, "updated_since"), versionSelection: c.Query(versionParam), deleted: c.Query(deletedParam),
		status: c.Query("status"), packageType: c.Query("package_type"), remote: c.Query("remote"),
	})
}

func (a *API) listVersions(c *fiber.Ctx, v *view.View) error {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return err
	}
	return a.sendAnswer(c, read{kind: readVersions, view: v, name: name, deleted: c.Query(deletedParam)})
}

func (a *API) getVersion(c *fiber.Ctx, v *view.View) error {
	t, err := readTarget(c)
	if err != nil {
		return err
	}
	return a.sendAnswer(c, read{kind: readVersion, view: v, name: t.Name, version: t.Version, deleted: c.Query(deletedParam)})
}

// getSnippet sends what a user adds to the configuration of a client to install a server.
func (a *API) getSnippet(c *fiber.Ctx, v *view.View) error {
	r := read{kind: readSnippet, view: v, name: c.Query("server"), version: c.Query(versionParam), format: c.Query("client")}
	if r.name == "" {
		return fault.New(fault.Invalid, "server is required: the name of a server")
	}
	if _, err := allowlist.ParseClient(r.format); err != nil {
		return err
	}
	if r.version == "" {
		r.version = registry.LatestAlias
	}
	return a.sendAnswer(c, r)
}

// sendAnswer sends the answer to a read, a kept one if there is one. One that may be outdated,
// because the database is away, has a warning and its age (RFC 9111, 5.1 and 5.5; RFC 7234, 5.5.1).
func (a *API) sendAnswer(c *fiber.Ctx, r read) error {
	return a.sendAnswerTo(c.UserContext(), c, r)
}

// sendAnswerTo is sendAnswer with a context that ends when nobody waits for the answer any more.
func (a *API) sendAnswerTo(ctx context.Context, c *fiber.Ctx, r read) error {
	answer, err := a.answers.Get(ctx, r)
	if answer.Stale {
		c.Set(fiber.HeaderWarning, `110 - "Response is Stale"`)
		c.Set(fiber.HeaderAge, strconv.FormatInt(int64(answer.Age.Seconds()), 10))
	}
	switch {
	case err != nil:
		return err
	case answer.Body == nil:
		return a.streamVersions(c, answer.Rest)
	}
	return a.bodies.Send(c, answer.Body)
}

// answer makes the answer to a read. A history that is too large is not made: it is streamed.
func (a *API) answer(ctx context.Context, r read) (readcache.Answer[*browsing.LongHistory], error) {
	var body []byte
	reader := a.readerOf(r.view)
	switch r.kind {
	case readList:
		p, err := reader.List(ctx, browsing.Query{
			Cursor: r.cursor, Limit: r.limit, Search: r.search, UpdatedSince: r.since, Version: r.versionSelection, IncludeDeleted: r.deleted,
			Status: r.status, PackageType: r.packageType, Remote: r.remote,
		})
		if err != nil {
			return readcache.Answer[*browsing.LongHistory]{}, err
		}
		body = appendList(nil, p.Records, p.NextCursor)
	case readVersions:
		history, err := reader.Versions(ctx, r.name, r.deleted)
		if err != nil || history.Long != nil {
			return readcache.Answer[*browsing.LongHistory]{Rest: history.Long}, err
		}
		body = appendList(nil, history.Records, "")
	case readSnippet:
		var err error
		if body, err = makeSnippet(ctx, reader, r); err != nil {
			return readcache.Answer[*browsing.LongHistory]{}, err
		}
	default:
		record, err := reader.Version(ctx, r.name, r.version, r.deleted)
		if err != nil {
			return readcache.Answer[*browsing.LongHistory]{}, err
		}
		body = appendRecord(nil, &record)
	}
	return readcache.Answer[*browsing.LongHistory]{Body: responsebody.NewShared(fiber.MIMEApplicationJSON, body)}, nil
}

// makeSnippet returns what a user adds to the configuration of a client.
func makeSnippet(ctx context.Context, reader *browsing.Browser, r read) ([]byte, error) {
	record, err := reader.Version(ctx, r.name, r.version, "")
	if err != nil {
		return nil, err
	}
	s, err := allowlist.NewSnippet(record, allowlist.Client(r.format))
	if err != nil {
		return nil, err
	}
	return allowlistjson.EncodeSnippet(s)
}

// timeParam returns a query parameter that is a time. A client may send the plus of the offset
// unescaped (RFC 3986, 3.4). The query parser turns it into a space, which a time never contains;
// timeParam restores it.
func timeParam(c *fiber.Ctx, name string) string {
	s := c.Query(name)
	if at := len(s) - len("+00:00"); at >= 0 && s[at] == ' ' {
		return s[:at] + "+" + s[at+1:]
	}
	return s
}
