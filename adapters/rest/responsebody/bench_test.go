package responsebody_test

import (
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
)

// BenchmarkNegotiate measures the entity tag and the compression of a list of 100 versions.
func BenchmarkNegotiate(b *testing.B) {
	body := strings.Repeat(`{"server":{"name":"com.example/weather","description":"Answers what the weather will be"}},`, 660)
	app := fiber.New()
	send := func(c *fiber.Ctx) error { return c.SendString(body) }
	app.Get("/plain", send)
	app.Get("/negotiated", responsebody.New(responsebody.Config{}).Negotiate, send)
	handle := app.Handler()
	for name, request := range map[string]struct{ path, coding string }{
		"no tag": {"/plain", "gzip"}, "entity tag": {"/negotiated", ""}, "compressed": {"/negotiated", "gzip"},
	} {
		b.Run(name, func(b *testing.B) {
			var c fasthttp.RequestCtx
			c.Request.SetRequestURI(request.path)
			c.Request.Header.Set("Accept-Encoding", request.coding)
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
