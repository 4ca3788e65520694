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
	"github.com/tollgate-dev/tollgate/ports/registrystore"
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
