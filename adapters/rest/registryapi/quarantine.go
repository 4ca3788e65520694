package registryapi

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
)

const quarantinePath = "/x/dev.tollgate/quarantine"

// Quarantiner hides servers. *quarantine.Service implements it and documents the errors.
type Quarantiner interface {
	Add(ctx context.Context, r quarantining.Request, read func() (quarantining.Draft, error)) (registry.Quarantined, error)
	List(ctx context.Context, r quarantining.Request, q quarantining.Query) (quarantining.Page, error)
	Release(ctx context.Context, r quarantining.Request, read func() (quarantining.Target, error)) error
}

// Quarantine is the part of the API that hides servers (contract C-20 to C-24). The use case decides
// who may do what.
type Quarantine struct {
	part
	quarantine Quarantiner
}

// NewQuarantine returns the part of the API for quarantine.
func NewQuarantine(q Quarantiner) *Quarantine {
	return &Quarantine{part{"curation", []string{quarantinePath}}, q}
}

// Mount adds the routes of contract C-20.
func (a *Quarantine) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		r.Post(prefix+quarantinePath, a.addQuarantine)
		r.Get(prefix+quarantinePath, a.listQuarantine)
		r.Delete(prefix+quarantinePath, a.releaseQuarantine)
	}
}

func newQuarantineRequest(c *fiber.Ctx) quarantining.Request {
	return quarantining.Request{Token: rest.BearerToken(c), Address: rest.Address(c)}
}

// quarantined is what is in quarantine, as the API shows it (contract C-20).
type quarantined struct {
	ServerName string  `json:"serverName"`
	Version    *string `json:"version"` // null for the whole server
	Reason     string  `json:"reason"`
	Since      string  `json:"since"`
	By         string  `json:"by"` // the id of a person, or "operator"
}

func newQuarantined(q registry.Quarantined) quarantined {
	return quarantined{
		ServerName: q.Name.String(), Version: textOrNull(q.Version.String()), Reason: string(q.Reason),
		Since: formatTime(q.Since), By: describePerson(q.By),
	}
}

// quarantineList is a page of what is in quarantine.
type quarantineList struct {
	Quarantined []quarantined `json:"quarantined"`
	Metadata    metadata      `json:"metadata"`
}

func (a *Quarantine) addQuarantine(c *fiber.Ctx) error {
	added, err := a.quarantine.Add(c.UserContext(), newQuarantineRequest(c), func() (quarantining.Draft, error) { return readDraft(c) })
	if err != nil {
		return err
	}
	return sendUncached(c, fiber.StatusOK, newQuarantined(added))
}

// readDraft reads the body of a request. The reason is checked later, after the permission.
func readDraft(c *fiber.Ctx) (quarantining.Draft, error) {
	body, err := jsonbody.Read(c)
	if err != nil {
		return quarantining.Draft{}, err
	}
	d := quarantining.Draft{
		Target: quarantining.Target{ServerName: body.Text("serverName"), Version: body.NullableText("version")},
		Reason: body.OptionalText("reason"),
	}
	return d, body.Err()
}

func (a *Quarantine) listQuarantine(c *fiber.Ctx) error {
	page, err := a.quarantine.List(c.UserContext(), newQuarantineRequest(c), quarantining.Query{Cursor: c.Query("cursor"), Limit: c.Query("limit")})
	if err != nil {
		return err
	}
	list := quarantineList{make([]quarantined, len(page.Entries)), metadata{page.NextCursor, len(page.Entries)}}
	for i, q := range page.Entries {
		list.Quarantined[i] = newQuarantined(q)
	}
	return sendUncached(c, fiber.StatusOK, list)
}

func (a *Quarantine) releaseQuarantine(c *fiber.Ctx) error {
	err := a.quarantine.Release(c.UserContext(), newQuarantineRequest(c), func() (quarantining.Target, error) { return readQuarantineTarget(c) })
	if err != nil {
		return err
	}
	c.Status(fiber.StatusNoContent)
	return nil
}

// readQuarantineTarget reads the parameters of a request. An empty version counts as absent.
func readQuarantineTarget(c *fiber.Ctx) (quarantining.Target, error) {
	name, err := queryText(c, "serverName")
	if err != nil {
		return quarantining.Target{}, err
	}
	if name == "" {
		return quarantining.Target{}, fault.New(fault.Invalid, "serverName is missing")
	}
	version, err := queryText(c, "version")
	return quarantining.Target{ServerName: name, Version: version}, err
}

// queryText returns a copy of a query parameter. It returns fault.Invalid for a value that is not
// text.
func queryText(c *fiber.Ctx, name string) (string, error) {
	value := c.Query(name)
	if !registry.IsText(value) {
		return "", fault.Newf(fault.Invalid, "%s must be text without NUL", name)
	}
	return strings.Clone(value), nil
}
