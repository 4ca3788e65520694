package otlp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/otlp/otlptest"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/instance"
	"github.com/tollgate-dev/tollgate/test/must"
)

func enabledConfig(endpoint string) otlp.Config {
	return otlp.Config{Enabled: true, Protocol: "http", ServiceName: "RateLimit", SamplingRate: 1, Endpoint: endpoint}
}

// openTracing opens tracing. It also returns its cleanup, which a test may call early, and the
// lines that it logs.
func openTracing(t *testing.T, c otlp.Config) (otlp.Tracing, func(), *test.Hook) {
	t.Helper()
	logger, lines := test.NewNullLogger()
	tracing, cleanup, err := otlp.Open(t.Context(), c, logrus.NewEntry(logger))
	must.Succeed(t, err)
	return tracing, cleanup, lines
}

func TestSpansArrive(t *testing.T) {
	for _, protocol := range []string{"http", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			collector := otlptest.Start(t)
			c := enabledConfig(collector.Endpoint(protocol))
			c.Protocol, c.Namespace = protocol, "gate"
			c.Headers = "api-key=a%2Cb , X-Tenant=one"
			tracing, cleanup, _ := openTracing(t, c)
			_, span := tracing.Tracer.Start(t.Context(), "work")
			span.End()
			cleanup() // sends the queued spans
			spans := collector.Spans()
			if len(spans) != 1 {
				t.Fatalf("the collector received %d spans, want 1", len(spans))
			}
			s := spans[0]
			if s.Protocol != protocol || s.GetName() != "work" || s.Headers["api-key"] != "a,b" ||
				s.Headers["x-tenant"] != "one" {
				t.Errorf("protocol %s, span %s, headers %v", s.Protocol, s.GetName(), s.Headers)
			}
			if s.Resource["service.name"] != "RateLimit" || s.Resource["service.namespace"] != "gate" ||
				len(s.Resource["service.instance.id"]) != 36 || s.Resource["service.instance.id"][14] != '4' {
				t.Errorf("resource: %v", s.Resource)
			}
		})
	}
}

// TestServiceNames checks which of several settings decides the resource and the headers of spans.
func TestServiceNames(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other")
	collector := otlptest.Start(t)
	c := enabledConfig("http://localhost:1")
	c.TracesEndpoint, c.InstanceID = collector.HTTP+"/v1/traces", "seven"
	c.Headers, c.TracesHeaders = "k=general", "k=special"
	tracing, cleanup, _ := openTracing(t, c)
	_, span := tracing.Tracer.Start(t.Context(), "work")
	span.End()
	cleanup()
	s := collector.Await(t, otlptest.Named("work"))
	if s.Resource["service.name"] != "RateLimit" || s.Resource["service.instance.id"] != "seven" ||
		s.Resource["deployment.environment.name"] != "test" || s.Headers["k"] != "special" {
		t.Errorf("resource %v, headers %v", s.Resource, s.Headers)
	}
}

const traceID, parentID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

// TestParentTraces checks that a span continues the trace of its caller, in each format of the
// headers, and that the caller decides whether it is sampled. The sampling rate decides only
// without a parent.
func TestParentTraces(t *testing.T) {
	w3c := func(flags string) map[string]string {
		return map[string]string{"Traceparent": "00-" + traceID + "-" + parentID + "-" + flags}
	}
	for name, c := range map[string]struct {
		headers map[string]string
		rate    float64
		setting string // OTEL_PROPAGATORS
		known   bool
		sampled bool
	}{
		"W3C, sampled by the caller, sampling rate 0":     {w3c("01"), 0, "", true, true},
		"W3C, not sampled by the caller, sampling rate 1": {w3c("00"), 1, "", true, false},
		"B3 in one header, sampled by the caller": {
			map[string]string{"B3": traceID + "-" + parentID + "-1"}, 0, "", true, true,
		},
		"B3 in one header, not sampled by the caller": {
			map[string]string{"B3": traceID + "-" + parentID + "-0"}, 1, "", true, false,
		},
		"B3 in several headers, sampled by the caller": {
			map[string]string{"X-B3-Traceid": traceID, "X-B3-Spanid": parentID, "X-B3-Sampled": "1"}, 0, "", true, true,
		},
		"no parent, sampling rate 1": {nil, 1, "", false, true},
		"no parent, sampling rate 0": {nil, 0, "", false, false},
		"a malformed W3C header is ignored": {
			map[string]string{"Traceparent": "00-zz-01"}, 1, "", false, true,
		},
		"W3C is ignored if the setting is b3": {w3c("01"), 1, "b3", false, true},
		"B3 in one header is read if the setting is b3multi": {
			map[string]string{"B3": traceID + "-" + parentID + "-1"}, 0, "b3multi", true, true,
		},
		"W3C is ignored if the setting is none": {w3c("01"), 1, "none", false, true},
		"W3C wins over B3 with another trace, as Envoy sends them": {
			map[string]string{
				"Traceparent": w3c("01")["Traceparent"], "B3": strings.Repeat("1", 32) + "-" + parentID + "-0",
			}, 0, "", true, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := enabledConfig(otlptest.Start(t).HTTP)
			cfg.SamplingRate = c.rate
			if c.setting != "" {
				cfg.Propagators = []string{c.setting}
			}
			tracing, cleanup, _ := openTracing(t, cfg)
			defer cleanup()
			header := http.Header{}
			for k, v := range c.headers {
				header.Set(k, v)
			}
			ctx := tracing.Propagator.Extract(t.Context(), propagation.HeaderCarrier(header))
			_, span := tracing.Tracer.Start(ctx, "work")
			defer span.End()
			got := span.SpanContext()
			if (got.TraceID().String() == traceID) != c.known || got.IsSampled() != c.sampled {
				t.Errorf("trace %s, sampled %v; want the trace of the caller: %v, sampled %v", got.TraceID(),
					got.IsSampled(), c.known, c.sampled)
			}
		})
	}
}

// TestInjectedHeaders checks that the trace is sent to other services in the W3C header only.
func TestInjectedHeaders(t *testing.T) {
	tracing, cleanup, _ := openTracing(t, enabledConfig(otlptest.Start(t).HTTP))
	defer cleanup()
	ctx, span := tracing.Tracer.Start(t.Context(), "work")
	defer span.End()
	injected := propagation.MapCarrier{}
	tracing.Propagator.Inject(ctx, injected)
	if len(injected) != 1 || !strings.Contains(injected["traceparent"], span.SpanContext().TraceID().String()) {
		t.Errorf("injected headers are %v, want a traceparent only", injected)
	}
}

// TestSamplingRate checks that about half of the spans are sampled at a rate of 0.5.
func TestSamplingRate(t *testing.T) {
	c := enabledConfig(otlptest.Start(t).HTTP)
	c.SamplingRate = 0.5
	tracing, cleanup, _ := openTracing(t, c)
	defer cleanup()
	sampled := 0
	for range 1000 {
		_, span := tracing.Tracer.Start(t.Context(), "work")
		if span.SpanContext().IsSampled() {
			sampled++
		}
	}
	if sampled < 350 || sampled > 650 { // nine standard deviations
		t.Errorf("%d of 1000 spans are sampled, want about 500", sampled)
	}
}

// TestUnreachableCollector checks that calls do not wait when the queue is full because the
// collector does not answer, and that the cleanup of Open returns in time.
func TestUnreachableCollector(t *testing.T) {
	t.Parallel()
	ends := map[string]chan struct{}{} // of the cleanups, all at the same time
	for _, protocol := range []string{"http", "grpc"} {
		for name, endpoint := range map[string]string{
			"connections are refused": refusingURL(), "requests are not answered": silentURL(t),
		} {
			c := enabledConfig(endpoint)
			c.Protocol = protocol
			tracing, cleanup, _ := openTracing(t, c)
			for range 10_000 {
				_, span := tracing.Tracer.Start(t.Context(), "work")
				span.End()
			}
			ended := make(chan struct{})
			go func() {
				cleanup()
				close(ended)
			}()
			ends[protocol+", "+name] = ended
		}
	}
	for name, ended := range ends {
		t.Run(name, func(t *testing.T) { await.Closed(t, "the end of the cleanup", ended) })
	}
}

// refusingURL returns the URL of a port without a listener.
func refusingURL() string { return "http://127.0.0.1:" + instance.FreePort() }

// silentURL returns the URL of a listener that accepts connections and never answers.
func silentURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() }) // the test is over
	return "http://" + l.Addr().String()
}

// TestDisabledTracing checks that Open succeeds without a logger if tracing is off.
func TestDisabledTracing(t *testing.T) {
	tracing, cleanup, err := otlp.Open(t.Context(), otlp.Config{}, nil)
	if err != nil || tracing.Enabled() {
		t.Errorf("enabled %v, %v", tracing.Enabled(), err)
	}
	cleanup()
}

func TestLogLinesHaveTraceIDs(t *testing.T) {
	logger, lines := test.NewNullLogger()
	log := logrus.NewEntry(logger)
	tracing, cleanup, err := otlp.Open(t.Context(), enabledConfig(otlptest.Start(t).HTTP), log)
	must.Succeed(t, err)
	defer cleanup()
	ctx, span := tracing.Tracer.Start(t.Context(), "work")
	defer span.End()
	log.WithContext(ctx).Warn("inside of a call")
	line := lines.LastEntry().Data
	if line["trace_id"] != span.SpanContext().TraceID().String() ||
		line["span_id"] != span.SpanContext().SpanID().String() {
		t.Errorf("a line inside of a span has the fields %v", line)
	}
	log.WithContext(context.Background()).Warn("outside of a call")
	if line := lines.LastEntry().Data; len(line) != 0 {
		t.Errorf("a line outside of a span has the fields %v, want no fields", line)
	}
}

func TestValidate(t *testing.T) {
	good := otlp.Config{
		Enabled: true, Protocol: "grpc", SamplingRate: 0.5, Endpoint: "https://c:4317", Headers: "a=b, c=%20d",
		Propagators: []string{"b3", "tracecontext"},
	}
	must.Succeed(t, good.Validate())
	off := otlp.Config{Protocol: "http", Endpoint: "c:4317"}
	if err := off.Validate(); err != nil {
		t.Errorf("Validate checks the standard variables although tracing is off: %v", err)
	}
	nan := 0.0
	for variable, change := range map[string]func(*otlp.Config){
		"TRACING_EXPORTER_PROTOCOL: ":                     func(c *otlp.Config) { c.Protocol = "thrift" },
		"TRACING_SAMPLING_RATE: must be 0 to 1, not 1.1":  func(c *otlp.Config) { c.SamplingRate = 1.1 },
		"TRACING_SAMPLING_RATE: must be 0 to 1, not -0.1": func(c *otlp.Config) { c.SamplingRate = -0.1 },
		"TRACING_SAMPLING_RATE: must be 0 to 1, not NaN":  func(c *otlp.Config) { c.SamplingRate = nan / nan },
		"OTEL_EXPORTER_OTLP_ENDPOINT: ":                   func(c *otlp.Config) { c.Endpoint = "collector:4317" },
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ":            func(c *otlp.Config) { c.TracesEndpoint = "ftp://c" },
		"OTEL_EXPORTER_OTLP_HEADERS: entry 2 ":            func(c *otlp.Config) { c.Headers = "a=b,secret" },
		"OTEL_EXPORTER_OTLP_HEADERS: the value":           func(c *otlp.Config) { c.Headers = "a=secret%zz" },
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS: ":             func(c *otlp.Config) { c.TracesHeaders = "a=secret%0a" },
		"OTEL_PROPAGATORS: ":                              func(c *otlp.Config) { c.Propagators = []string{"b4"} },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), variable) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("error is %v, want an error that begins with %q and does not quote the secret", err, variable)
		}
	}
}

// errSecret is an error whose text contains a secret. Spans must not contain its text.
var errSecret = fmt.Errorf("query: %w", errors.New("the password is hunter2"))

// awaitSpan returns the span with this name. It fails the test if the span contains the secret.
func awaitSpan(t *testing.T, c *otlptest.Collector, name string) otlptest.Span {
	t.Helper()
	s := c.Await(t, otlptest.Named(name))
	if strings.Contains(s.Span.String(), "hunter2") {
		t.Errorf("the span contains a secret: %v", s.Span)
	}
	return s
}

// runInSpan calls do in the span of a call and returns the context of this span.
func runInSpan(tracing otlp.Tracing, do func(ctx context.Context)) trace.SpanContext {
	ctx, span := tracing.Tracer.Start(context.Background(), "call")
	defer span.End()
	do(ctx)
	return span.SpanContext()
}
