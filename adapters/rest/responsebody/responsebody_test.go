package responsebody_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/internal/packed"
	"github.com/tollgate-dev/tollgate/adapters/rest/responsebody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

var (
	short = strings.Repeat("s", responsebody.MinSize)
	long  = strings.Repeat("long ", responsebody.MinSize)
	huge  = strings.Repeat("huge ", 1<<19)
)

type response struct {
	status int
	header map[string]string
	body   string
	raw    int
}

// sharedApp serves bodies with Send and with Fixed.
var sharedApp = sync.OnceValue(func() *fiber.App {
	app, sender := fiber.New(), responsebody.New(responsebody.Config{})
	for path, body := range map[string]string{"/short": short, "/long": long, "/huge": huge, "/empty": ""} {
		shared := responsebody.NewShared("text/plain; charset=utf-8", []byte(body))
		app.Get(path, func(c *fiber.Ctx) error {
			c.Set("X-Other", "kept")
			return sender.Send(c, shared)
		})
		app.Get("/fixed"+path, responsebody.NewFixed("text/plain; charset=utf-8", []byte(body)).Send)
	}
	return app
})

func call(t *testing.T, method, path string, headers ...string) response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := sharedApp().Test(r, -1)
	must.Succeed(t, err)
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	must.Succeed(t, err)
	a := response{status: got.StatusCode, header: map[string]string{}, body: string(raw), raw: len(raw)}
	for name := range got.Header {
		a.header[name] = got.Header.Get(name)
	}
	if len(raw) > 0 && a.header["Content-Encoding"] == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		must.Succeed(t, err)
		plain, err := io.ReadAll(z)
		must.Succeed(t, err)
		a.body = string(plain)
	}
	return a
}

var tagForm = regexp.MustCompile(`^"[0-9a-f]{16}(-gzip)?"$`)

func TestCodings(t *testing.T) {
	for coding, compressed := range map[string]bool{
		"": false, "gzip": true, "GZip": true, "x-gzip": true, "*": true, "br": false,
		"deflate, gzip;q=1.0, *;q=0.5": true,
		"gzip;q=0":                     false, "gzip; q=0.0": false, "gzip;q=0, *": false, "*;q=0": false,
		"identity":     false,
		"gzip;q=0.001": true, "identity;q=0, gzip": true, "gzip;q=0.5, identity": false, "gzip;q=2": false,
		"gzip;q=x":     false,
		"gzip;level=9": false, "gzipped": false, "notgzip": false, "br;q=1, gzip;q=0.8": true, ",,gzip,": true,
		"gzip;q=NaN": false,
	} {
		for _, path := range []string{"/long", "/fixed/long", "/short", "/fixed/short"} {
			want := compressed && strings.HasSuffix(path, "long")
			a := call(t, "GET", path, "Accept-Encoding", coding)
			if got := a.header["Content-Encoding"] == "gzip"; a.status != 200 || got != want {
				t.Errorf("%q %s: %d, compressed %v, want %v", coding, path, a.status, got, want)
			}
			if body := map[bool]string{
				true: long, false: short,
			}[strings.HasSuffix(path, "long")]; a.body != body || want && a.raw >= len(body)/2 {
				t.Errorf("%q %s: the body differs, or its %d bytes are not compressed", coding, path, a.raw)
			}
			tag := a.header["Etag"]
			if !tagForm.MatchString(tag) || strings.HasSuffix(tag, `-gzip"`) != want {
				t.Errorf("%q %s: ETag %s", coding, path, tag)
			}
			if a.header["Vary"] != "Accept-Encoding" || a.header["Cache-Control"] != "no-cache" ||
				a.header["Content-Type"] == "" {
				t.Errorf("%q %s: headers %v", coding, path, a.header)
			}
		}
	}
}

// TestHugeBody compresses a body that needs a buffer of its own.
func TestHugeBody(t *testing.T) {
	plain, compressed := call(t, "GET", "/huge"), call(t, "GET", "/huge", "Accept-Encoding", "gzip")
	if plain.body != huge || compressed.body != huge || compressed.raw >= len(huge)/100 {
		t.Errorf("%d bytes, and %d decompressed from %d bytes, want %d", len(plain.body), len(compressed.body),
			compressed.raw, len(huge))
	}
}

func TestCodingsOnTwoLines(t *testing.T) {
	a := call(t, "GET", "/long", "Accept-Encoding", "br", "Accept-Encoding", "gzip")
	if a.header["Content-Encoding"] != "gzip" {
		t.Errorf("headers %v", a.header)
	}
}

func TestIfNoneMatch(t *testing.T) {
	for _, path := range []string{"/long", "/fixed/long", "/short", "/fixed/short", "/empty"} {
		for _, coding := range []string{"", "gzip"} {
			fresh := call(t, "GET", path, "Accept-Encoding", coding)
			tag := fresh.header["Etag"]
			for sent, same := range map[string]bool{
				tag: true, "W/" + tag: true, `"other", ` + tag: true, `"a,b" , W/"x",` + tag + `, "y"`: true,
				"*": true, " * ": true,
				"": false, `"other"`: false, strings.Trim(tag, `"`): false, tag[:len(tag)-1]: false,
				`"*"`: false, "**": false,
				"w/" + tag: false, `x, ` + tag: false, strings.ToUpper(tag) + "x": false,
			} {
				a := call(t, "GET", path, "Accept-Encoding", coding, "If-None-Match", sent)
				if !same {
					if a.status != 200 || a.body != fresh.body {
						t.Errorf("%s %q, %q: %d", path, coding, sent, a.status)
					}
					continue
				}
				if a.status != 304 || a.body != "" || a.header["Content-Type"] != "" ||
					a.header["Content-Encoding"] != "" {
					t.Errorf("%s %q, %q: %d %q %v", path, coding, sent, a.status, a.body, a.header)
				}
				for _, name := range []string{"Etag", "Vary", "Cache-Control", "X-Other"} {
					if a.header[name] != fresh.header[name] {
						t.Errorf("%s %q, %q: %s is %q", path, coding, sent, name, a.header[name])
					}
				}
			}
		}
	}
	if a := call(t, "GET", "/long", "If-None-Match", `"x"`, "If-None-Match",
		call(t, "GET", "/long").header["Etag"]); a.status != 304 {
		t.Errorf("on two lines: %d", a.status)
	}
}

// TestTagsOfCodingsDiffer sends the entity tag of one coding in a request for another.
func TestTagsOfCodingsDiffer(t *testing.T) {
	plain, compressed := call(t, "GET", "/long"), call(t, "GET", "/long", "Accept-Encoding", "gzip")
	if plain.header["Etag"] == compressed.header["Etag"] {
		t.Error("both codings have the same entity tag")
	}
	if a := call(t, "GET", "/long", "If-None-Match", compressed.header["Etag"]); a.status != 200 || a.body != long {
		t.Errorf("plain body with the tag of the compressed one: status %d", a.status)
	}
	if a := call(t, "GET", "/short"); a.header["Etag"] == plain.header["Etag"] {
		t.Error("two bodies have the same entity tag")
	}
}

func TestHead(t *testing.T) {
	for _, path := range []string{"/long", "/fixed/long", "/short"} {
		for _, coding := range []string{"", "gzip"} {
			get, head := call(t, "GET", path, "Accept-Encoding", coding),
				call(t, "HEAD", path, "Accept-Encoding", coding)
			if head.status != 200 || head.body != "" {
				t.Errorf("HEAD %s: %d", path, head.status)
			}
			for name, want := range get.header {
				if name != "Date" && head.header[name] != want {
					t.Errorf("HEAD %s: %s is %q, want %q", path, name, head.header[name], want)
				}
			}
			if a := call(t, "HEAD", path, "Accept-Encoding", coding, "If-None-Match",
				get.header["Etag"]); a.status != 304 {
				t.Errorf("HEAD %s with its entity tag: status %d", path, a.status)
			}
		}
	}
}

func FuzzHeaders(f *testing.F) {
	for _, seed := range [][2]string{
		{"gzip", `"x"`}, {"gzip;q=0.5,*;q=", `W/"a", *`}, {";;,=", `"`}, {"q=;gzip", `W/W/"a"`}, {"*;q=1e9", `,,"",`},
	} {
		f.Add(seed[0], seed[1])
	}
	fixed := responsebody.NewFixed("text/plain", []byte(long))
	app := fiber.New()
	f.Fuzz(func(t *testing.T, coding, tags string) {
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		defer app.ReleaseCtx(c)
		c.Request().Header.Set("Accept-Encoding", coding)
		c.Request().Header.Set("If-None-Match", tags)
		must.Succeed(t, fixed.Send(c))
		compressed := string(c.Response().Header.Peek("Content-Encoding")) == "gzip"
		if compressed && !strings.ContainsAny(strings.ToLower(coding), "*z") {
			t.Errorf("%q is read as accepting gzip", coding)
		}
		if status := c.Response().StatusCode(); status == 304 && !strings.ContainsAny(tags, `"*`) {
			t.Errorf("%q is read as listing the entity tag", tags)
		}
	})
}

// TestLargeBodiesReserveMemory expects large bodies to reserve memory while they are sent, once for
// all responses that share a body, and to release it.
func TestLargeBodiesReserveMemory(t *testing.T) {
	sender := responsebody.New(responsebody.Config{InFlight: len(huge) + 1<<20})
	app := fiber.New(fiber.Config{ErrorHandler: func(c *fiber.Ctx, err error) error {
		if !fault.Is(err, fault.Unavailable) {
			t.Errorf("the error is %v, want fault.Unavailable", err)
		}
		return c.SendStatus(503)
	}})
	for path, text := range map[string]string{"/huge": huge, "/other": huge, "/huger": huge + huge, "/long": long} {
		shared := responsebody.NewShared("text/plain", []byte(text))
		app.Get(path, func(c *fiber.Ctx) error { return sender.Send(c, shared) })
	}
	handle := app.Handler()
	request := func(path, coding string) (*fasthttp.RequestCtx, int) {
		c := &fasthttp.RequestCtx{}
		c.Request.SetRequestURI(path)
		c.Request.Header.Set("Accept-Encoding", coding)
		handle(c)
		return c, c.Response.StatusCode()
	}
	send := func(c *fasthttp.RequestCtx, want string) {
		t.Helper()
		if got := string(c.Response.Body()); got != want { // Body reads the stream to its end and closes it
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
	}
	for _, coding := range []string{"", "gzip"} {
		first, status := request("/huge", coding)
		second, shared := request("/huge", "")
		if status != 200 || shared != 200 {
			t.Errorf("two responses of one large body have status %d and %d, want 200", status, shared)
		}
		for _, path := range []string{"/other", "/huger"} {
			if _, status := request(path, coding); status != 503 {
				t.Errorf("%s while the memory is in use: status %d, want 503", path, status)
			}
		}
		if _, small := request("/long", coding); small != 200 {
			t.Errorf("a small response at the same time has status %d", small)
		}
		if first.Response.Body() == nil {
			t.Error("the first body is empty")
		}
		if _, status := request("/other", coding); status != 503 {
			t.Errorf("the memory of a body is released while another response sends it: status %d", status)
		}
		send(second, huge)
		other, _ := request("/other", "")
		send(other, huge)
	}
}

// TestPackedBodies sends bodies that are kept compressed: as others are, with the same tags, and
// with the memory of a stream.
func TestPackedBodies(t *testing.T) {
	sender, app := responsebody.New(responsebody.Config{InFlight: 16 << 20}), fiber.New()
	for path, text := range map[string]string{"/huge": huge, "/long": long, "/short": short} {
		to := packed.NewWriter()
		if _, err := io.WriteString(to, text); err != nil {
			t.Fatal(err)
		}
		pack, err := to.Close()
		must.Succeed(t, err)
		body, err := responsebody.NewPacked("text/plain", pack, "Cache-Control", "public, max-age=60", "X-More", "1")
		must.Succeed(t, err)
		plain := responsebody.NewShared("text/plain", []byte(text), "Cache-Control", "public, max-age=60",
			"X-More", "1")
		app.Get(path, func(c *fiber.Ctx) error { return sender.Send(c, body) })
		app.Get("/plain"+path, func(c *fiber.Ctx) error { return sender.Send(c, plain) })
		if body.Size() > len(text) {
			t.Errorf("%s is kept in %d bytes", path, body.Size())
		}
	}
	request := func(method, path string, headers ...string) (status int, header, body string) {
		c := &fasthttp.RequestCtx{}
		c.Request.SetRequestURI(path)
		c.Request.Header.SetMethod(method)
		for i := 0; i < len(headers); i += 2 {
			c.Request.Header.Set(headers[i], headers[i+1])
		}
		app.Handler()(c)
		raw := c.Response.Body()
		if len(raw) > 0 && string(c.Response.Header.ContentEncoding()) == "gzip" {
			var err error
			if raw, err = c.Response.BodyGunzip(); err != nil {
				t.Error(err)
			}
		}
		h := &c.Response.Header
		return c.Response.StatusCode(),
			fmt.Sprintf("%s %s %s %s", h.Peek("ETag"), h.Peek("Cache-Control"), h.Peek("X-More"),
				h.ContentType()), string(raw)
	}
	for _, path := range []string{"/huge", "/long", "/short"} {
		for _, coding := range []string{"gzip", "identity"} {
			for range 10 { // each gives its memory back
				status, header, body := request("GET", path, "Accept-Encoding", coding)
				wantStatus, wantHeader, wantBody := request("GET", "/plain"+path, "Accept-Encoding", coding)
				if status != wantStatus || header != wantHeader || body != wantBody {
					t.Errorf("%s %s: %d %s, %d bytes, want %d %s, %d bytes", path, coding, status, header, len(body),
						wantStatus, wantHeader, len(wantBody))
				}
				tag, _, _ := strings.Cut(header, " ")
				if status, header, body := request("GET", path, "Accept-Encoding", coding, "If-None-Match",
					tag); status != 304 || body != "" || !strings.Contains(header, "max-age=60 1") {
					t.Errorf("%s with its tag: %d %s", path, status, header)
				}
			}
		}
	}
}
