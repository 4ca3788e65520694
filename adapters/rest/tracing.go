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

// Tracing makes a span for each request. The zero value makes no spans and adds no cost.
type Tracing struct {
	Tracer     trace.Tracer
	Propagator propagation.TextMapPropagator
}

// untraced are the paths that probes request all the time.
var untraced = append([]string{"/ready"}, healthPaths...)

// traceRequest is a middleware that makes the span of a request. The span is named after the route.
// It contains neither path and query, which hold names, ids and cursors, nor the caller.
func (t Tracing) traceRequest(c *fiber.Ctx) error {
	if slices.Contains(untraced, c.Path()) {
		return c.Next()
	}
	ctx := t.Propagator.Extract(c.UserContext(), httpconn.NewTraceCarrier(&c.Request().Header))
	ctx, span := t.Tracer.Start(ctx, "HTTP", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	c.SetUserContext(ctx)
	err := c.Next()
	if span.IsRecording() {
		describeRequest(span, c)
	}
	return err
}

// describeRequest sets name and attributes of the span (semantic conventions for HTTP).
func describeRequest(span trace.Span, c *fiber.Ctx) {
	name, scheme := strings.Clone(c.Method()), "http"
	method := semconv.HTTPRequestMethodKey.String(name)
	if Secure(c) {
		scheme = "https"
	}
	if name == fiber.MethodTrace { // the method of all unknown methods, see adjustServer
		name, method = "HTTP", semconv.HTTPRequestMethodOther
	}
	status := c.Response().StatusCode()
	span.SetAttributes(
		method, semconv.URLScheme(scheme), semconv.HTTPResponseStatusCode(status),
		attribute.String(fieldRequestID, RequestID(c)),
	)
	if route := c.Route().Path; route != "/" { // the path of the middlewares
		span.SetAttributes(semconv.HTTPRoute(route))
		name += " " + route
	}
	span.SetName(name)
	if status >= http.StatusInternalServerError {
		span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(status)))
		span.SetStatus(codes.Error, "")
	}
}
