package registryapi

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

const quarantinePath = "/x/dev.tollgate/quarantine"

// Quarantine is the part of the API that hides servers (contract C-20 to C-24). The use case
// decides who may do what.
type Quarantine struct {
	part
	callers
	quarantine *quarantining.Service
}

// NewQuarantine returns the part of the API for quarantine.
func NewQuarantine(a authority.Authority, r Resource, q *quarantining.Service) *Quarantine {
	return &Quarantine{part{"curation", []string{quarantinePath}, r}, callers{a}, q}
}

// Mount adds the routes of contract C-20.
func (a *Quarantine) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		r.Post(prefix+quarantinePath, a.known(a.addQuarantine))
		r.Get(prefix+quarantinePath, a.known(a.listQuarantine))
		r.Delete(prefix+quarantinePath, a.known(a.releaseQuarantine))
	}
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
		ServerName: q.Name.String(), Version: jsonstring.TextOrNull(q.Version.String()), Reason: string(q.Reason),
		Since: jsonstring.FormatTime(q.Since), By: describePerson(q.By),
	}
}

// quarantineList is a page of what is in quarantine.
type quarantineList struct {
	Quarantined []quarantined `json:"quarantined"`
	Metadata    metadata      `json:"metadata"`
}

func (a *Quarantine) addQuarantine(c *fiber.Ctx, who authority.Caller) error {
	added, err := a.quarantine.Add(c.UserContext(), who, readDraft(c))
	if err != nil {
		return err
	}
	return sendUncached(c, fiber.StatusOK, newQuarantined(added))
}

// readDraft reads the body of a request. The reason is checked later, after the permission.
func readDraft(c *fiber.Ctx) (d quarantining.Draft) {
	body, err := jsonbody.Read(c)
	if err != nil {
		d.Malformed = err
		return d
	}
	d.ServerName, d.Version, d.Reason = body.Text("serverName"), body.NullableText("version"),
		body.OptionalText("reason")
	d.Malformed = body.Err()
	return d
}

func (a *Quarantine) listQuarantine(c *fiber.Ctx, who authority.Caller) error {
	page, err := a.quarantine.List(c.UserContext(), who, quarantining.Query{
		Cursor: c.Query("cursor"), Limit: c.Query("limit"),
	})
	if err != nil {
		return err
	}
	return sendUncached(c, fiber.StatusOK, quarantineList{
		each.Map(page.Entries, newQuarantined), metadata{page.NextCursor, len(page.Entries)},
	})
}

func (a *Quarantine) releaseQuarantine(c *fiber.Ctx, who authority.Caller) error {
	if err := a.quarantine.Release(c.UserContext(), who, readQuarantineTarget(c)); err != nil {
		return err
	}
	c.Status(fiber.StatusNoContent)
	return nil
}

// readQuarantineTarget reads the parameters of a request. An empty version counts as absent.
func readQuarantineTarget(c *fiber.Ctx) (t quarantining.Target) {
	if t.ServerName, t.Malformed = queryText(c, "serverName"); t.Malformed != nil {
		return t
	}
	if t.ServerName == "" {
		t.Malformed = fault.New(fault.Invalid, "serverName is missing")
		return t
	}
	t.Version, t.Malformed = queryText(c, "version")
	return t
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
