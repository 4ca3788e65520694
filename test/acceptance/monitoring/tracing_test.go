package monitoring

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/adapters/otlp/otlptest"
	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// The trace of a caller, in the formats of W3C and B3.
const (
	CallerTraceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	CallerSpanID  = "00f067aa0ba902b7"
	traceparent   = "00-" + CallerTraceID + "-" + CallerSpanID + "-01"
	grpcSpan      = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
)

// TestTracing calls each listener and checks the spans that a collector gets, over both protocols
// of the exporter.
func TestTracing(t *testing.T) {
	for _, protocol := range []string{"http", "grpc"} {
		fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
			t.Run(protocol, func(t *testing.T) {
				collector := otlptest.Start(t)
				s := e.Start(t,
					"TRACING_ENABLED=true", "TRACING_EXPORTER_PROTOCOL="+protocol,
					"TRACING_SERVICE_NAMESPACE=acceptance",
					"TRACING_SAMPLING_RATE=0", // only the requests that the caller samples
					"OTEL_EXPORTER_OTLP_ENDPOINT="+collector.Endpoint(protocol), "OTEL_BSP_SCHEDULE_DELAY=50",
				)
				apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusOK) // not sampled
				makeTracedCalls(t, s)
				wantSpans(t, collector, e.Shared)
				for _, span := range collector.Spans() {
					if hex.EncodeToString(span.GetTraceId()) != CallerTraceID {
						t.Errorf("%s belongs to a trace that is not sampled", span.GetName())
					}
				}
			})
		})
	}
}

// makeTracedCalls requests two decisions and a list of servers.
func makeTracedCalls(t *testing.T, s *fixture.Service) {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", traceparent, "x-request-id", "asked-by-grpc")
	if _, err := s.NewRateLimitClient(t).ShouldRateLimit(ctx,
		fixture.NewRateLimitRequest("shop", "tenant", "secret", "path", "/browse")); err != nil {
		t.Fatal(err)
	}
	ask := map[string]any{"domain": "shop", "descriptors": []any{map[string]any{"entries": []any{
		map[string]string{"key": "batch", "value": "secret"},
	}}}}
	b3 := []string{"X-B3-TraceId", CallerTraceID, "X-B3-SpanId", CallerSpanID, "X-B3-Sampled", "1"}
	apiclient.Call(t, "POST", s.RateLimitAPI+"/json", ask, append(b3, "X-Request-Id", "asked-by-json")...).WantStatus(t,
		http.StatusOK)
	a := apiclient.Call(t, "GET", s.API+"/v0.1/servers?search=secret", nil, "B3", CallerTraceID+"-"+CallerSpanID+"-1",
		"X-Request-Id", "asked-by-api")
	if a.WantStatus(t, http.StatusOK).Header.Get("X-Request-Id") != "asked-by-api" {
		t.Errorf("the answer names %q", a.Header.Get("X-Request-Id"))
	}
}

func wantSpans(t *testing.T, collector *otlptest.Collector, store bool) {
	t.Helper()
	for name, want := range map[string]map[string]string{
		grpcSpan: {
			"request_id": "asked-by-grpc", "ratelimit.domain": "shop", "ratelimit.code": "OK",
			"rpc.response.status_code": "OK",
		},
		"POST /json": {
			"request_id": "asked-by-json", "ratelimit.domain": "shop", "http.response.status_code": "200",
		},
		"GET /v0.1/servers": {
			"request_id": "asked-by-api", "http.route": "/v0.1/servers", "http.response.status_code": "200",
		},
	} {
		span := collector.Await(t, otlptest.Named(name))
		if hex.EncodeToString(span.GetParentSpanId()) != CallerSpanID {
			t.Errorf("%s does not continue the caller's trace", name)
		}
		for key, value := range want {
			if span.Attributes[key] != value {
				t.Errorf("%s: %s is %q, want %q", name, key, span.Attributes[key], value)
			}
		}
		if span.Resource["service.name"] != "RateLimit" || span.Resource["service.namespace"] != "acceptance" {
			t.Errorf("resource %v", span.Resource)
		}
		isRead := name == "GET /v0.1/servers" // the request before it has reserved its place below the limit
		wantChild(t, collector, span, "db.operation.name", isRead)
		wantChild(t, collector, span, "db.operation.batch.size", store && !isRead)
	}
}

// wantChild looks for a span below another one, with an attribute and without any content of the
// request.
func wantChild(t *testing.T, collector *otlptest.Collector, parent otlptest.Span, attribute string, want bool) {
	t.Helper()
	if !want {
		return
	}
	child := collector.Await(t, func(s otlptest.Span) bool {
		return string(s.GetParentSpanId()) == string(parent.GetSpanId()) && s.Attributes[attribute] != ""
	})
	if strings.Contains(child.Span.String()+parent.Span.String(), "secret") {
		t.Errorf("the spans contain the request: %v %v", child.Span, parent.Span)
	}
}

// TestCollectorAway checks that the service responds and stops normally without a collector.
func TestCollectorAway(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, "TRACING_ENABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1",
		"OTEL_BSP_SCHEDULE_DELAY=10", "OTEL_BSP_MAX_QUEUE_SIZE=64")
	c := s.NewRateLimitClient(t)
	for range 200 { // more than the queue holds
		fixture.WantOverallCode(t, c, fixture.NewRateLimitRequest("shop", "tenant", "free"),
			ratelimit.RateLimitResponse_OK)
	}
	apiclient.Call(t, "GET", s.API+"/v0.1/servers", nil).WantStatus(t, http.StatusOK)
	s.Stop()
}

// TestRequestIDOfFailure finds the request id of a response in the log.
func TestRequestIDOfFailure(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t, "TRACING_ENABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "LOG_LEVEL=debug")
	ctx := metadata.AppendToOutgoingContext(t.Context(), "traceparent", traceparent, "x-request-id", "the-one")
	if _, err := s.NewRateLimitClient(t).ShouldRateLimit(ctx,
		fixture.NewRateLimitRequest("", "tenant", "a")); err == nil {
		t.Fatal("an empty domain is no mistake")
	}
	s.Stop()
	for line := range strings.Lines(s.Process.Log()) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["request_id"] == "the-one" {
			if fields["trace_id"] != CallerTraceID || fields["span_id"] == "" {
				t.Errorf("%v", fields)
			}
			return
		}
	}
	t.Errorf("no line names the request:\n%s", s.Process.Log())
}
