package rest

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Local serves parts of the API in this process, for operator commands. It has no listener, and no
// limits of requests and their sizes. It is safe for concurrent use.
type Local struct{ handle fasthttp.RequestHandler }

// The keys of the values of a request of Local.
type (
	contextKey struct{} // of the call
	failureKey struct{} // the error of the handler
)

// NewLocal returns a Local with the routes of parts.
func NewLocal(parts ...Part) *Local {
	app := fiber.New(fiber.Config{
		CaseSensitive: true, StrictRouting: true, DisableStartupMessage: true,
		ErrorHandler: func(c *fiber.Ctx, err error) error {
			c.Context().SetUserValue(failureKey{}, err)
			return nil
		},
	})
	app.Use(func(c *fiber.Ctx) error {
		ctx, _ := c.Context().UserValue(contextKey{}).(context.Context)
		c.SetUserContext(ctx)
		return c.Next()
	})
	for _, p := range parts {
		p.Mount(app)
	}
	return &Local{app.Handler()}
}

// RoundTrip implements http.RoundTripper. It returns the error of the handler as it is; if that is
// about fields, which options of a command are, then the first error of the constructors.
func (l *Local) RoundTrip(r *http.Request) (*http.Response, error) {
	var request fasthttp.Request
	request.Header.SetMethod(r.Method)
	request.SetRequestURI(r.URL.RequestURI())
	for name := range r.Header {
		request.Header.Set(name, r.Header.Get(name))
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		request.SetBodyRaw(body)
	}
	var c fasthttp.RequestCtx
	c.Init(&request, nil, nil)
	c.SetUserValue(contextKey{}, r.Context())
	l.handle(&c)
	if err, failed := c.UserValue(failureKey{}).(error); failed {
		if f, ok := fault.As(err); ok && f.Code == fault.ValidationError && f.Err != nil {
			err = f.Err
		}
		return nil, err
	}
	response := &http.Response{
		StatusCode: c.Response.StatusCode(), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c.Response.Body())),
	}
	c.Response.Header.VisitAll(func(name, value []byte) { response.Header.Add(string(name), string(value)) })
	return response, nil
}
