package ratelimitapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
)

// Tracing makes a span for each call that requests a decision. The zero value makes no spans and
// adds no cost.
type Tracing struct {
	Tracer     trace.Tracer
	Propagator propagation.TextMapPropagator
}

func (t Tracing) isEnabled() bool { return t.Tracer != nil }

// Attributes of spans in addition to the semantic conventions. The entries are left out, which
// may contain addresses, tokens or names of people.
const (
	attrRequestID   = attribute.Key("request_id")
	attrDomain      = attribute.Key("ratelimit.domain")
	attrDescriptors = attribute.Key("ratelimit.descriptors")
	attrCode        = attribute.Key("ratelimit.code")

	maxDomain = 256 // bytes of a domain in a span
)

// The options of all spans of a transport.
var (
	grpcMethod = strings.TrimPrefix(ratelimitpb.RateLimitService_ShouldRateLimit_FullMethodName, "/")
	grpcSpan   = []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.RPCSystemNameGRPC, semconv.RPCMethod(grpcMethod)),
	}
	jsonSpan = []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.HTTPRoute(jsonPath)),
	}
)

// interceptUnary is a grpc.UnaryServerInterceptor that makes the span of a call. It costs less than
// a stats handler, which is called for every message.
func (t Tracing) interceptUnary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (any, error) {
	if info.FullMethod != ratelimitpb.RateLimitService_ShouldRateLimit_FullMethodName {
		return next(ctx, request)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	ctx, span := t.Tracer.Start(t.Propagator.Extract(ctx, httpconn.MetadataCarrier(md)), grpcMethod, grpcSpan...)
	defer span.End()
	response, err := next(ctx, request)
	if span.IsRecording() {
		describeCall(span, grpcstatus.Code(err))
		if id := grpcRequestID(ctx); id != "" {
			span.SetAttributes(attrRequestID.String(id))
		}
	}
	return response, err
}

// describeCall sets the status of a call in its span. An error of the client is not an error of the
// span (semantic conventions for gRPC).
func describeCall(span trace.Span, code grpccodes.Code) {
	span.SetAttributes(semconv.RPCResponseStatusCode(code.String()))
	switch code {
	case grpccodes.Unknown, grpccodes.DeadlineExceeded, grpccodes.Unimplemented, grpccodes.Internal,
		grpccodes.Unavailable, grpccodes.DataLoss:
		span.SetAttributes(semconv.ErrorTypeKey.String(code.String()))
		span.SetStatus(codes.Error, "")
	}
}

// spanContext is the key of the context with the span in a request of /json.
type spanContext struct{}

// contextOf returns the context for a request. It is not the context of the library, which is
// cancelled when the shutdown begins, although requests in flight must finish.
func contextOf(c *fasthttp.RequestCtx) context.Context {
	if ctx, ok := c.UserValue(spanContext{}).(context.Context); ok {
		return ctx
	}
	return context.Background()
}

// traceJSON makes a span for each request of /json.
func (t Tracing) traceJSON(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		if string(c.Path()) != jsonPath {
			next(c)
			return
		}
		ctx := t.Propagator.Extract(context.Background(), httpconn.NewTraceCarrier(&c.Request.Header))
		ctx, span := t.Tracer.Start(ctx, "HTTP "+jsonPath, jsonSpan...)
		defer span.End()
		c.SetUserValue(spanContext{}, ctx)
		next(c)
		if span.IsRecording() {
			describeRequest(span, c)
		}
	}
}

func describeRequest(span trace.Span, c *fasthttp.RequestCtx) {
	method := semconv.HTTPRequestMethodOther
	if m := string(c.Method()); m == http.MethodPost || m == http.MethodGet || m == http.MethodHead {
		method = semconv.HTTPRequestMethodKey.String(m)
		span.SetName(m + " " + jsonPath)
	}
	status := c.Response.StatusCode()
	span.SetAttributes(method, semconv.URLScheme("http"), semconv.HTTPResponseStatusCode(status),
		attrRequestID.String(httpconn.RequestIDOf(c)))
	if status >= http.StatusInternalServerError {
		span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(status)))
		span.SetStatus(codes.Error, "")
	}
}

// traced returns a function that also adds the decision to the span of the call.
func traced(d decide.Func) decide.Func {
	return func(ctx context.Context, r *ratelimit.Request) (ratelimit.Decision, error) {
		decision, err := d(ctx, r)
		span := trace.SpanFromContext(ctx)
		if !span.IsRecording() {
			return decision, err
		}
		span.SetAttributes(attrDomain.String(clipDomain(string(r.Domain))), attrDescriptors.Int(len(r.Descriptors)))
		if err == nil {
			span.SetAttributes(attrCode.String(codeToProto(decision.Code).String()))
		}
		return decision, err
	}
}

// clipDomain returns a short copy of a domain. It copies because the span outlives the message.
func clipDomain(domain string) string {
	return strings.ToValidUTF8(domain[:min(len(domain), maxDomain)], "")
}
