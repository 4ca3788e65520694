// Package adminapi serves administration below /admin/v1: what operator commands do to records. It
// reads and writes JSON, and calls the same use cases as the commands and the console.
//
// A subject is a file. Its mount method adds its routes with read and write; a handler reads the
// request, with everything that may be wrong in it, and returns the act that calls a use case. The
// use case gets the condition of If-Match (conditionOf) and checks it in its transaction. The
// subject's mount method is called by Mount, its use cases are fields of UseCases, and its routes
// are described in adapters/rest/apidocs/openapi.yaml.
//
// route.go keeps the order of the checks of every route: limit, 401, 405, 413 and 415, 400, 403,
// 404, 412, 409, 422. The listener makes some of them; WriteFault puts 401 before those.
package adminapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/adapters/rest/overview"
	"github.com/tollgate-dev/tollgate/adapters/rest/statefile"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/credentials"
	"github.com/tollgate-dev/tollgate/core/auth/devices"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/catalogue/manage"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/methodstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// root is the beginning of all paths.
const root = "/admin/v1"

// API is the administration part of the API.
type API struct{ use UseCases }

// UseCases are what the routes call. All are required.
type UseCases struct {
	Callers   authority.Authority
	Operators *permit.Operators
	Recorder  authority.Recorder
	Cursors   *page.Sealer
	Clock     clock.Clock

	Accounts     authstore.Accounts
	People       *people.Service
	Devices      *devices.Operator
	Grants       registrystore.Grants
	GrantChanges *delegating.GrantOperator
	Policies     *delegating.Policies
	Views        *viewing.Operator
	Mirrors      *mirroring.Operator
	Webhooks     *notifying.Operator
	Reviews      *reviewing.Service
	Methods      methodstore.Store
	Listing      *manage.Operator
	Log          authstore.AuditLog
	Overview     overview.Source
	Services     *delegating.Services
	Tokens       *tokens.Service
	Credentials  *credentials.Service
	State        *declaring.Service
	Providers    *federating.Providers
	Kinds        management.Kinds
	Access       *deciding.Service
}

// New returns the administration part of the API.
func New(u UseCases) *API { return &API{u} }

// Mount implements rest.Part.
func (a *API) Mount(r fiber.Router) {
	a.mountPeople(r)
	a.mountGrants(r)
	a.mountPolicies(r)
	a.mountViews(r)
	a.mountMirrors(r)
	a.mountWebhooks(r)
	a.mountReviews(r)
	a.mountMethods(r)
	r.Get(root+"/audit", a.read(a.operator(auditRead), a.searchAudit))
	r.Get(root+"/overview", a.read(a.operator(adminRead), a.getOverview))
	a.mountMe(r)
	a.mountServices(r)
	a.mountState(r)
	for _, name := range slices.Sorted(maps.Keys(a.use.Kinds)) {
		a.mountKind(r, newKindRoutes(a.use.Kinds[name]))
	}
	test := change{audit.AccountChange, "provider_test", company.Kind.Name}
	r.Post(root+"/providers/:name/test", a.write(test, a.operator(adminWrite), a.testProvider))
	r.Post(root+"/access/explain", a.read(a.operator(adminRead), a.explainAccess))
}

// Name implements rest.Part.
func (*API) Name() string { return "admin" }

// Owns implements rest.Part.
func (*API) Owns(path string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// Scope implements rest.Part.
func (*API) Scope(string, string) throttle.Scope { return throttle.APIAddress }

// MaxBody implements rest.Part.
func (*API) MaxBody(method, path string) int {
	if path == applyPath {
		return statefile.MaxBytes
	}
	if method == http.MethodGet || method == http.MethodDelete {
		return rest.MaxRecordBody
	}
	return rest.MaxBody
}

// WriteFault writes an error with its code. A caller who is not known gets 401 also for an error
// that comes before the handler of a route: an unknown path or method, or a body that is too large.
func (a *API) WriteFault(c *fiber.Ctx, f *fault.Error) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	if _, known := c.Locals(callerKey{}).(authority.Caller); !known && isAboutRequest(f.Kind) {
		if _, err := a.identify(c); fault.Is(err, fault.Unauthenticated) {
			f, _ = fault.As(err)
			c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
			c.Status(http.StatusUnauthorized)
		}
	}
	if f.Kind == fault.Invalid && c.Response().StatusCode() == http.StatusBadRequest {
		switch f.Code {
		case fault.RuleViolated:
			c.Status(http.StatusUnprocessableEntity)
		case "":
			f.Code = auth.CodeValidation
		}
	}
	return authapi.SendFault(c, f)
}

func isAboutRequest(k fault.Kind) bool { return k == fault.Invalid || k == fault.NotFound }
