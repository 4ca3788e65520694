// Package curationapi serves what an organisation does with the registry besides publishing, below
// /v0.1/x/dev.tollgate and /v0/x/dev.tollgate: quarantine (contract C-20 to C-24). The use cases that
// it calls decide who may do what.
package curationapi

import (
	"context"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

const quarantinePath = "/x/dev.tollgate/quarantine"

// operatorName is the person in answers for what an operator did.
const operatorName = "operator"

// prefixes returns the prefixes of all paths: the documented one, and the one that the publishing
// client uses.
func prefixes() [2]string { return [2]string{"/v0.1", "/v0"} }

// Quarantine hides servers. *quarantine.Service implements it and documents the errors.
type Quarantine interface {
	Add(ctx context.Context, r quarantining.Request, read func() (quarantining.Draft, error)) (registry.Quarantined, error)
	List(ctx context.Context, r quarantining.Request, q quarantining.Query) (quarantining.Page, error)
	Release(ctx context.Context, r quarantining.Request, read func() (quarantining.Target, error)) error
}

// Ports are the dependencies of an API. All fields are required.
type Ports struct{ Quarantine Quarantine }

// API is the curators' part of the API.
type API struct{ ports Ports }

// New returns the curators' part of the API.
func New(p Ports) *API { return &API{p} }

// Mount adds the routes of contract C-20.
func (a *API) Mount(r fiber.Router) {
	for _, prefix := range prefixes() {
		r.Post(prefix+quarantinePath, a.addQuarantine)
		r.Get(prefix+quarantinePath, a.listQuarantine)
		r.Delete(prefix+quarantinePath, a.releaseQuarantine)
	}
}

// Name implements rest.Part.
func (*API) Name() string { return "curation" }

// Owns implements rest.Part.
func (*API) Owns(path string) bool {
	for _, prefix := range prefixes() {
		if path == prefix+quarantinePath || strings.HasPrefix(path, prefix+quarantinePath+"/") {
			return true
		}
	}
	return false
}

// Scope implements rest.Part. The paths belong to the registry.
func (*API) Scope(string, string) throttle.Scope { return throttle.RegistryAddress }

// MaxBody implements rest.Part.
func (*API) MaxBody(string, string) int { return rest.MaxRecordBody }

// WriteFault writes {"error": message}.
func (*API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.JSON(map[string]string{"error": f.Message})
}

// metadata is the metadata of a list, as that of the list of servers.
type metadata struct {
	NextCursor string `json:"nextCursor,omitempty"`
	Count      int    `json:"count"`
}

// formatTime returns a time as the registry writes times.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// describePerson returns the id of a person, or the name of operators for none.
func describePerson(id registry.Holder) string {
	if id == "" {
		return operatorName
	}
	return string(id)
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

// send sends a JSON value that nobody may keep.
func send(c *fiber.Ctx, value any) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Status(fiber.StatusOK).JSON(value)
}

func newRequest(c *fiber.Ctx) quarantining.Request {
	return quarantining.Request{Token: rest.BearerToken(c), Address: rest.Address(c)}
}
