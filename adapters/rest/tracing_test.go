package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/ports/throttle"
	"github.com/tollgate-dev/tollgate/test/must"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// peoplePart is a part with personal data in paths and queries, which spans must not contain.
type peoplePart struct{ part }

func (p peoplePart) Mount(r fiber.Router) {
	r.Get("/v9/people/:email", func(c *fiber.Ctx) error {
		if !trace.SpanFromContext(c.UserContext()).IsRecording() {
			return fiber.NewError(fiber.StatusTeapot, "the handler does not see the span")
		}
		return c.SendString("ok")
	})
}

func TestSpans(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string
		span, route  string
		status       string
		failed       bool
	}{
		"route": {
			"GET", "/v9/people/eve@example.com?cursor=eve", "GET /v9/people/:email", "/v9/people/:email", "200", false,
		},
		"head":           {"HEAD", "/v9/people/eve", "HEAD /v9/people/:email", "/v9/people/:email", "200", false},
		"no route":       {"GET", "/v9/eve", "GET", "", "404", false},
		"wrong method":   {"POST", "/v9/people/eve", "POST", "", "405", false},
		"unknown method": {"EVE", "/v9/people/eve", "HTTP", "", "405", false},
		"panic":          {"GET", "/v0.1/panic", "GET /v0.1/panic", "/v0.1/panic", "500", true},
		"client error":   {"GET", "/v0.1/fault/1", "GET /v0.1/fault/1", "/v0.1/fault/1", "400", false},
	} {
		t.Run(name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			s := serveTraced(t, spans, sdk.NeverSample())
			a := s.call(t, c.method, c.path, nil, "Traceparent", traceparent, "X-Request-Id", "the-one",
				"X-Forwarded-Proto", "eve")
			must.Succeed(t, s.server.Shutdown(context.Background()))
			if len(spans.Ended()) != 1 {
				t.Fatalf("%d spans, want 1; status %d", len(spans.Ended()), a.status)
			}
			got := spans.Ended()[0]
			attributes := map[string]string{}
			for _, kv := range got.Attributes() {
				attributes[string(kv.Key)] = kv.Value.String()
				if strings.Contains(kv.Value.String(), "eve") {
					t.Errorf("the span contains %v", kv)
				}
			}
			if got.Name() != c.span || attributes["http.route"] != c.route ||
				attributes["http.response.status_code"] != c.status ||
				attributes["request_id"] != "the-one" || attributes["url.scheme"] != "http" ||
				(got.Status().Code == codes.Error) != c.failed {
				t.Errorf("%s %v %v", got.Name(), attributes, got.Status())
			}
			if got.Parent().SpanID().String() != traceparent[36:52] || got.SpanKind() != trace.SpanKindServer {
				t.Errorf("parent %v, kind %v", got.Parent(), got.SpanKind())
			}
		})
	}
}

// serveTraced starts a listener with tracing. A request without a trace is sampled by root.
func serveTraced(t *testing.T, spans *tracetest.SpanRecorder, root sdk.Sampler) *service {
	t.Helper()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithSampler(sdk.ParentBased(root)))
	return serveWith(t, config(), rest.Ports{
		Parts:   []rest.Part{peoplePart{part{"/v9", throttle.APIAddress}}},
		Health:  new(rest.Health),
		Tracing: rest.Tracing{Tracer: provider.Tracer("test"), Propagator: propagation.TraceContext{}},
	})
}

// TestProbesHaveNoSpans requests the paths of probes.
func TestProbesHaveNoSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	s := serveTraced(t, spans, sdk.AlwaysSample())
	for _, path := range []string{"/health", "/v0.1/health", "/v0/health", "/ready"} {
		if a := s.call(t, http.MethodGet, path, nil); a.status != 200 {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if n := len(spans.Started()); n != 0 {
		t.Errorf("%d spans, want none", n)
	}
}
