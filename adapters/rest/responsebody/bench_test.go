package responsebody_test

import (
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
)

// BenchmarkSend measures a list of 100 versions: as it is, with an entity tag and headers, and
// compressed.
func BenchmarkSend(b *testing.B) {
	body := strings.Repeat(
		`{"server":{"name":"com.example/weather","description":"Answers what the weather will be"}},`, 660)
	app := fiber.New()
	send := func(c *fiber.Ctx) error { return c.SendString(body) }
	app.Get("/plain", send)
	sender, shared := responsebody.New(responsebody.Config{}), responsebody.NewShared("text/plain", []byte(body))
	app.Get("/shared", func(c *fiber.Ctx) error { return sender.Send(c, shared) })
	handle := app.Handler()
	for name, request := range map[string]struct{ path, coding string }{
		"no tag": {"/plain", "gzip"}, "entity tag": {"/shared", ""}, "compressed": {"/shared", "gzip"},
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
