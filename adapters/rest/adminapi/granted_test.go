package adminapi_test

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/rest/adminapi"
	"github.com/tollgate-dev/tollgate/core/access/ruling"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/registry/watching"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// application is an authority for whom every caller is an application, with a token for this registry that
// has all scopes.
type application struct{ authoritytest.Callers }

func (application) Identify(_ context.Context, _ string, from netip.Addr) (authority.Caller, error) {
	return authority.NewGranted(authority.Granted{UserID: "olga", Client: "vscode", Scopes: scope.All()}, from), nil
}

// forgetful records nothing.
type forgetful struct{}

func (forgetful) RecordChanges(context.Context, ...audit.Change) error { return nil }

// TestApplicationsAdministerNothing: no route calls a use case for a token of the authorization server. Without
// them a call would panic.
func TestApplicationsAdministerNothing(t *testing.T) {
	var last error
	app := fiber.New(fiber.Config{ErrorHandler: func(_ *fiber.Ctx, err error) error { last = err; return nil }})
	adminapi.New(adminapi.UseCases{
		Callers: application{}, Recorder: forgetful{}, Kinds: inprocess.NewKinds(
			new(federating.Providers), ruling.New(ruling.Ports{}), new(viewing.Operator), new(mirroring.Operator), new(delegating.Services),
			registering.NewClients(registering.Ports{}), registering.NewResources(registering.Ports{}), watching.NewSources(watching.SourcePorts{}),
			viewing.NewCollections(nil, nil, nil), authorizing.Config{On: true},
		),
	}).Mount(app)
	insufficient := 0
	for _, r := range app.GetRoutes(true) {
		kind := strings.HasSuffix(r.Path, "/:name") // writes of other objects read what they are about
		if r.Method != fiber.MethodGet && (r.Method != fiber.MethodDelete || !kind) {
			continue
		}
		path := strings.NewReplacer(":name", "none", ":id", unknownID).Replace(r.Path)
		response, err := app.Test(httptest.NewRequestWithContext(t.Context(), r.Method, path, nil))
		must.Succeed(t, err)
		must.Succeed(t, response.Body.Close())
		f, _ := fault.As(last)
		if f != nil && f.Code == scope.CodeInsufficient {
			insufficient++
		} else if last == nil || f != nil && f.Kind != fault.Invalid { // what is wrong with the request comes first
			t.Errorf("%s %s: %v", r.Method, r.Path, last)
		}
		last = nil
	}
	if insufficient < 30 {
		t.Errorf("only %d routes say that the scope is missing", insufficient)
	}
}
