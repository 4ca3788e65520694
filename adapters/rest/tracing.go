package rest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
)

// Tracing makes a span of each request. The zero value makes none, and then
// nothing of it stands in a request's way.
type Tracing struct {
	Tracer     trace.Tracer
	Propagator propagation.TextMapPropagator
}

// untraced are the paths that machines ask all the time.
var untraced = []string{"/health", "/ready"}

// around makes the span of a request, named after its route: paths and queries
// hold names, ids and cursors, and are left out, as is who asks.
func (t Tracing) around(c *fiber.Ctx) error {
	if slices.Contains(untraced, c.Path()) {
		return c.Next()
	}
	ctx := t.Propagator.Extract(c.UserContext(), httpconn.NewTraceCarrier(&c.Request().Header))
	ctx, span := t.Tracer.Start(ctx, "HTTP", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	c.SetUserContext(ctx)
	err := c.Next()
	if span.IsRecording() {
		tell(span, c)
	}
	return err
}

// tell describes a request (semantic conventions for HTTP).
func tell(span trace.Span, c *fiber.Ctx) {
	name, scheme := strings.Clone(c.Method()), "http"
	method := semconv.HTTPRequestMethodKey.String(name)
	if Secure(c) {
		scheme = "https"
	}
	if name == fiber.MethodTrace { // stands for every method that is not known
		name, method = "HTTP", semconv.HTTPRequestMethodOther
	}
	status := c.Response().StatusCode()
	span.SetAttributes(
		method, semconv.URLScheme(scheme), semconv.HTTPResponseStatusCode(status),
		attribute.String(fieldRequestID, RequestID(c)),
	)
	if route := c.Route().Path; route != "/" { // that of what surrounds all routes
		span.SetAttributes(semconv.HTTPRoute(route))
		name += " " + route
	}
	span.SetName(name)
	if status >= http.StatusInternalServerError {
		span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(status)))
		span.SetStatus(codes.Error, "")
	}
}
