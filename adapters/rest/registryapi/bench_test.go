package registryapi_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/rest/readcache"
	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// fixedServers returns the same records for every read.
type fixedServers struct {
	registrystore.SnapshotReader
	page registrystore.Page
}

func (s *fixedServers) List(context.Context, registrystore.Query) (registrystore.Page, error) {
	return s.page, nil
}

func (s *fixedServers) Latest(context.Context, registry.Name, bool) (registry.Record, error) {
	return s.page.Records[0], nil
}

// BenchmarkReads compares reads with a constant response of the same server. The difference is
// routing, parsing the request, reading in the use case and writing the records.
func BenchmarkReads(b *testing.B) {
	s := &fixedServers{}
	for i := range 100 {
		s.page.Records = append(s.page.Records, record(b, fmt.Sprintf("com.example/server-%03d", i), "1.0.0"))
	}
	app := fiber.New(fiber.Config{CaseSensitive: true, StrictRouting: true})
	api, _ := registryapi.New(registryapi.Config{}, anybody{}, newReads(s, newViews(b)), nil, readcache.Ports{})
	api.Mount(app)
	app.Get("/constant", func(c *fiber.Ctx) error { return c.SendString("ok") })
	handle := app.Handler()
	for name, path := range map[string]string{
		"constant": "/constant", "latest": "/v0.1/servers/com.example%2Fserver-000/versions/latest",
		"list of 100": "/v0.1/servers?limit=100",
	} {
		b.Run(name, func(b *testing.B) {
			var c fasthttp.RequestCtx
			c.Request.SetRequestURI(path)
			b.ReportAllocs()
			for b.Loop() {
				c.Response.Reset()
				handle(&c)
			}
			if c.Response.StatusCode() != 200 {
				b.Fatal(c.Response.StatusCode())
			}
		})
	}
}

// BenchmarkKeptReads compares reads of a kept response that everybody gets with those that need a
// caller: of the registry, and of a view for some people.
func BenchmarkKeptReads(b *testing.B) {
	s := &fixedServers{page: registrystore.Page{Records: []registry.Record{record(b, "com.example/a", "1.0.0")}}}
	views := newViews(b)
	v, err := view.New(view.Draft{Name: "some", Access: "people", Groups: []string{"acme/devs"}})
	must.Succeed(b, err)
	must.Succeed(b, views.Put(b.Context(), v))
	for name, c := range map[string]struct {
		private bool
		place   string
	}{"public": {false, ""}, "private": {true, ""}, "a view for some": {true, "/registries/some"}} {
		reads := newReads(s, views)
		reads.Gate = viewing.NewGate(viewing.Config{Private: c.private}, viewing.GatePorts{
			Views: views, Members: developers{}, Changes: noChanges{}, Clock: clocktest.NewManual(now),
		})
		api, end := registryapi.New(
			registryapi.Config{Private: c.private, Cache: readcache.Config{Bytes: 1 << 20}}, authoritytest.Callers{}, reads, nil,
			readcache.Ports{Changes: noChanges{}, Clock: clocktest.NewManual(now)})
		b.Cleanup(end)
		app := fiber.New(fiber.Config{CaseSensitive: true, StrictRouting: true})
		api.Mount(app)
		handle := app.Handler()
		b.Run(name, func(b *testing.B) {
			var request fasthttp.RequestCtx
			request.Request.SetRequestURI(c.place + "/v0.1/servers/com.example%2Fa/versions/latest")
			request.Request.Header.Set("Authorization", "Bearer ada")
			b.ReportAllocs()
			for b.Loop() {
				request.Response.Reset()
				handle(&request)
			}
			if request.Response.StatusCode() != 200 {
				b.Fatal(request.Response.StatusCode())
			}
		})
	}
}

// developers says that everybody is in a group.
type developers struct{}

func (developers) MembershipOf(context.Context, registry.Holder) (authority.Membership, error) {
	return authority.Membership{Email: "ada@example.com", Groups: []string{"acme/devs"}}, nil
}
