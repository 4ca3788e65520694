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
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/view"
)

const deletedParam = "include_deleted"

// read is a request to read the registry: everything that the response depends on. Parameters are
// as they were sent; an empty one is absent.
type read struct {
	kind          readKind
	view          *view.View // as it was when the request came; nil for the registry itself
	name, version string
	query         browsing.Query // of a list; otherwise it has IncludeDeleted alone
	format        string         // of an allow list; of a snippet its client
}

type readKind uint8

const (
	readList readKind = iota
	readVersions
	readVersion
	readAllowList
	readSnippet
	readTools
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
	q := &r.query
	return []*string{
		&r.name, &r.version, &r.format, &q.Cursor, &q.Limit, &q.Search, &q.UpdatedSince, &q.Version,
		&q.IncludeDeleted, &q.Status,
		&q.PackageType, &q.Remote,
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
		return r.query == browsing.Query{
			Limit: r.query.Limit, Version: r.query.Version, IncludeDeleted: r.query.IncludeDeleted,
		}
	case readVersion:
		return r.version == registry.LatestAlias
	}
	return false
}

func (a *API) listServers(c *fiber.Ctx, v *view.View) error {
	return a.sendAnswer(c, read{kind: readList, view: v, query: browsing.Query{
		Cursor: c.Query("cursor"), Limit: c.Query("limit"), Search: c.Query("search"),
		UpdatedSince: timeParam(c, "updated_since"),
		Version:      c.Query(versionParam), IncludeDeleted: c.Query(deletedParam), Status: c.Query("status"),
		PackageType: c.Query("package_type"), Remote: c.Query("remote"),
	}})
}

func (a *API) listVersions(c *fiber.Ctx, v *view.View) error {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return err
	}
	return a.sendAnswer(c, read{
		kind: readVersions, view: v, name: name, query: browsing.Query{IncludeDeleted: c.Query(deletedParam)},
	})
}

func (a *API) getVersion(c *fiber.Ctx, v *view.View) error {
	return a.sendVersionRead(c, readVersion, v)
}

// sendVersionRead sends the answer to a read of a version in the path, or of what belongs to it.
func (a *API) sendVersionRead(c *fiber.Ctx, kind readKind, v *view.View) error {
	name, err := pathValue(c, nameParam)
	if err != nil {
		return err
	}
	version, err := pathValue(c, versionParam)
	if err != nil {
		return err
	}
	return a.sendAnswer(c, read{
		kind: kind, view: v, name: name, version: version, query: browsing.Query{
			IncludeDeleted: c.Query(deletedParam),
		},
	})
}

// getSnippet sends what a user adds to the configuration of a client to install a server.
func (a *API) getSnippet(c *fiber.Ctx, v *view.View) error {
	r := read{
		kind: readSnippet, view: v, name: c.Query("server"), version: c.Query(versionParam), format: c.Query("client"),
	}
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

// sendAnswerTo is sendAnswer with a context that ends when no one waits for the answer any more.
func (a *API) sendAnswerTo(ctx context.Context, c *fiber.Ctx, r read) error {
	found, err := a.answers.Get(ctx, r)
	switch {
	case err != nil:
		return err
	case found.Body == nil:
		if err = a.streamVersions(c, found.Rest); err == nil {
			responsebody.NewHeaders(a.config.publicHeaders(&r)...).Set(c)
		}
		return err
	}
	if err = a.bodies.Send(c, found.Body); err == nil && found.Stale {
		c.Set(fiber.HeaderWarning, `110 - "Response is Stale"`)
		c.Set(fiber.HeaderAge, strconv.FormatInt(int64(found.Age.Seconds()), 10))
		keepFromCaches(c, r.staleControl())
	}
	return err
}

// answer is the answer to a read, or a history that is too large to be made: it is streamed.
type answer = readcache.Answer[*history.Long]

func (a *API) makeAnswer(ctx context.Context, r read) (answer, error) {
	reader, headers := a.readerOf(r.view), a.config.publicHeaders(&r)
	if r.kind == readSnippet {
		return makeSnippet(ctx, reader, r, headers)
	}
	body, long, err := a.makeBody(ctx, reader, r)
	if err != nil || long != nil {
		return answer{Rest: long}, err
	}
	return answer{Body: responsebody.NewShared(fiber.MIMEApplicationJSON, body, headers...)}, nil
}

// makeBody returns the body of the answer to a read, or the history that it has.
func (a *API) makeBody(ctx context.Context, reader *browsing.Browser, r read) ([]byte, *history.Long, error) {
	switch r.kind {
	case readList:
		p, err := reader.List(ctx, r.query)
		return appendList(nil, p.Records, p.NextCursor), nil, err
	case readVersions:
		history, err := reader.Versions(ctx, r.name, r.query.IncludeDeleted)
		if err != nil || history.Long != nil {
			return nil, history.Long, err
		}
		return appendList(nil, history.Records, ""), nil, nil
	}
	record, err := reader.Version(ctx, r.name, r.version, r.query.IncludeDeleted)
	if err != nil {
		return nil, nil, err
	}
	if r.kind == readTools {
		body, err := a.makeTools(ctx, record)
		return body, nil, err
	}
	return appendRecord(nil, &record), nil, nil
}

// unlistedHeader says why allow lists cannot have what a snippet starts or reaches.
const unlistedHeader = "X-Tollgate-Unlisted"

// makeSnippet makes the answer that is added to the configuration of a client.
func makeSnippet(ctx context.Context, reader *browsing.Browser, r read, headers []string) (answer, error) {
	record, err := reader.Version(ctx, r.name, r.version, r.query.IncludeDeleted)
	if err != nil {
		return answer{}, err
	}
	s, err := allowlist.NewSnippet(record, allowlist.Client(r.format))
	if err != nil {
		return answer{}, err
	}
	body, err := allowlistjson.EncodeSnippet(s)
	if err != nil {
		return answer{}, err
	}
	if s.Unlisted != "" {
		headers = append(headers, unlistedHeader, s.Unlisted)
	}
	return answer{Body: responsebody.NewShared(allowlistjson.ContentType(s.Client), body, headers...)}, nil
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
