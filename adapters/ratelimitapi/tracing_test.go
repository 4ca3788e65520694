package ratelimitapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/adapters/ratelimitapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/test/must"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// tracedFixture contains both listeners with tracing and their log.
type tracedFixture struct {
	*fixture
	spans *tracetest.SpanRecorder
	lines *logtest.Hook
}

func openTraced(t testing.TB, d decide.Func, rate float64) tracedFixture {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(rate))))
	logger, lines := logtest.NewNullLogger()
	b := openWithPorts(t, newConfig(), ratelimitapi.Ports{
		Decide: d, Log: logrus.NewEntry(logger),
		Tracing: ratelimitapi.Tracing{Tracer: provider.Tracer("test"), Propagator: propagation.TraceContext{}},
	})
	return tracedFixture{b, spans, lines}
}

// onlySpan shuts the listeners down and returns the only span.
func (b tracedFixture) onlySpan(t *testing.T) sdk.ReadOnlySpan {
	t.Helper()
	must.Succeed(t, b.server.Shutdown(context.Background()))
	spans := b.spans.Ended()
	if len(spans) != 1 {
		t.Fatalf("got %d spans, want 1", len(spans))
	}
	return spans[0]
}

func wantSpan(t *testing.T, s sdk.ReadOnlySpan, name string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, a := range s.Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
	if s.Name() != name || s.SpanKind() != trace.SpanKindServer {
		t.Errorf("the span is %s of kind %v, want %s of kind server", s.Name(), s.SpanKind(), name)
	}
}

func TestSpanOfGRPC(t *testing.T) {
	b := openTraced(t, nil, 0) // sampled because the traceparent of the caller requests it
	b.loadRules(t)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", traceparent, "x-request-id", "known-id")
	if _, err := b.newClient(t).ShouldRateLimit(ctx, newRequest("zero", "k")); err != nil {
		t.Fatal(err)
	}
	s := b.onlySpan(t)
	wantSpan(t, s, "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", map[string]string{
		"rpc.system.name": "grpc", "rpc.response.status_code": "OK", "request_id": "known-id",
		"ratelimit.domain": "d", "ratelimit.descriptors": "2", "ratelimit.code": "OVER_LIMIT",
	})
	if s.Parent().SpanID().String() != traceparent[36:52] || s.SpanContext().TraceID().String() != traceparent[3:35] {
		t.Errorf("parent is %v", s.Parent())
	}
}

func TestSpanOfJSON(t *testing.T) {
	b := openTraced(t, nil, 0)
	b.loadRules(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/json?secret=1",
		strings.NewReader(`{"domain":"d","descriptors":[{"entries":[{"key":"zero","value":"v"}]}]}`))
	must.Succeed(t, err)
	r.Header.Set("Traceparent", traceparent)
	answer, err := http.DefaultClient.Do(r)
	must.Succeed(t, err)
	_ = answer.Body.Close() // only its header is read
	http.DefaultClient.CloseIdleConnections()
	s := b.onlySpan(t)
	wantSpan(t, s, "POST /json", map[string]string{
		"http.request.method": "POST", "http.route": "/json", "http.response.status_code": "429", "url.scheme": "http",
		"request_id": answer.Header.Get("X-Request-Id"), "ratelimit.domain": "d", "ratelimit.code": "OVER_LIMIT",
	})
	if s.Parent().SpanID().String() != traceparent[36:52] || s.Status().Code == codes.Error {
		t.Errorf("parent %v, status %v", s.Parent(), s.Status())
	}
	for _, a := range s.Attributes() {
		if strings.Contains(a.Value.String(), "secret") {
			t.Errorf("the span contains the query: %v", a)
		}
	}
}

// TestUnsampledCalls checks that calls that are not sampled have no span.
func TestUnsampledCalls(t *testing.T) {
	b := openTraced(t, nil, 0)
	b.loadRules(t)
	if _, err := b.newClient(t).ShouldRateLimit(t.Context(), newRequest("k")); err != nil {
		t.Fatal(err)
	}
	getURL(t, b.url+"/json")
	if n := len(b.spans.Ended()); n != 0 {
		t.Errorf("got %d spans, want 0", n)
	}
}

// TestProbesHaveNoSpans checks that a health check has no span.
func TestProbesHaveNoSpans(t *testing.T) {
	b := openTraced(t, nil, 1)
	getURL(t, b.url+"/healthcheck")
	if n := len(b.spans.Started()); n != 0 {
		t.Errorf("got %d spans, want 0", n)
	}
}

func TestSpanOfAFailedCall(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status string
		failed bool
	}{
		"unavailable store": {fault.New(fault.Unavailable, "unreachable"), "Unavailable", true},
		"unexpected error":  {errors.New("a secret"), "Internal", true},
		"invalid request":   {fault.New(fault.Invalid, "invalid"), "InvalidArgument", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := openTraced(t, newFailingDecider(c.err), 1)
			if _, err := b.newClient(t).ShouldRateLimit(t.Context(), newRequest("k")); err == nil {
				t.Fatal("no error")
			}
			s := b.onlySpan(t)
			wantSpan(t, s, "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", map[string]string{
				"rpc.response.status_code": c.status,
			})
			if (s.Status().Code == codes.Error) != c.failed || strings.Contains(s.Status().Description, "secret") {
				t.Errorf("status %v", s.Status())
			}
		})
	}
}

// TestRequestID checks that the response and the log contain the request id of the client if it is
// valid, and otherwise a random id.
func TestRequestID(t *testing.T) {
	b := openTraced(t, newFailingDecider(errors.New("broken")), 1)
	for sent, kept := range map[string]bool{
		"a/b:c": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false, "": false,
	} {
		for _, path := range []string{"/json", "/healthcheck", "/nothing"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+path,
				strings.NewReader(`{"domain":"d"}`))
			must.Succeed(t, err)
			r.Header.Set("X-Request-Id", sent)
			answer, err := http.DefaultClient.Do(r)
			must.Succeed(t, err)
			_ = answer.Body.Close() // only its header is read
			got := answer.Header.Get("X-Request-Id")
			if (got == sent) != kept || !kept && len(got) != 24 {
				t.Errorf("%s: sent %q, got %q", path, sent, got)
			}
			if line := b.lines.LastEntry(); path == "/json" &&
				(line == nil || line.Data["request_id"] != got || !carriesSpan(line)) {
				t.Errorf("log line %v", line)
			}
		}
	}
	for sent, kept := range map[string]bool{"from-envoy": true, "a b": false, "": false} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", sent)
		var header metadata.MD
		if _, err := b.newClient(t).ShouldRateLimit(ctx, newRequest("k"), grpc.Header(&header)); err == nil {
			t.Fatal("no error")
		}
		got := strings.Join(header.Get("x-request-id"), " ")
		if (got == sent) != kept || !kept && len(got) != 24 {
			t.Errorf("gRPC: sent %q, got %q", sent, got)
		}
		if line := b.lines.LastEntry(); line.Data["request_id"] != got || !carriesSpan(line) {
			t.Errorf("sent %q: log line %v", sent, line.Data)
		}
	}
}

// carriesSpan reports whether the context of a log line contains a span.
func carriesSpan(line *logrus.Entry) bool {
	return line.Context != nil && trace.SpanContextFromContext(line.Context).IsValid()
}

// TestRequestIDOfPanic checks that the response to a panic and the log contain the same request id.
func TestRequestIDOfPanic(t *testing.T) {
	b := openTraced(t,
		decide.Func(func(context.Context, *ratelimit.Request) (ratelimit.Decision, error) { panic("broken") }), 1)
	answer, err := http.Post(b.url+"/json", "", strings.NewReader(`{"domain":"d"}`))
	must.Succeed(t, err)
	_ = answer.Body.Close() // only its header is read
	id := answer.Header.Get("X-Request-Id")
	if answer.StatusCode != 500 || len(id) != 24 || b.lines.LastEntry().Data["request_id"] != id {
		t.Errorf("status %d, id %q in the response, logged %v", answer.StatusCode, id, b.lines.LastEntry().Data)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "from-envoy")
	if _, err := b.newClient(t).ShouldRateLimit(ctx, newRequest("k")); err == nil {
		t.Fatal("no error")
	}
	if line := b.lines.LastEntry(); line.Data["request_id"] != "from-envoy" {
		t.Errorf("logged %v", line.Data)
	}
}

// TestLongDomain checks that the span contains at most 256 bytes of the domain.
func TestLongDomain(t *testing.T) {
	b := openTraced(t, nil, 1)
	b.loadRules(t)
	r := newRequest("k")
	r.Domain = strings.Repeat("ü", 1000)
	if _, err := b.newClient(t).ShouldRateLimit(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for _, a := range b.onlySpan(t).Attributes() {
		if a.Key == attribute.Key("ratelimit.domain") && len(a.Value.AsString()) != 256 {
			t.Errorf("the domain has %d bytes, want 256", len(a.Value.AsString()))
		}
	}
}

func getURL(t *testing.T, url string) {
	t.Helper()
	answer, err := http.Get(url)
	must.Succeed(t, err)
	_ = answer.Body.Close() // the body is not read
}
