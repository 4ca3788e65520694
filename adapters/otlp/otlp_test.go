package otlp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/adapters/otlp"
	"github.com/tollgate-dev/tollgate/adapters/otlp/otlptest"
)

func config(endpoint string) otlp.Config {
	return otlp.Config{Enabled: true, Protocol: "http", ServiceName: "RateLimit", SamplingRate: 1, Endpoint: endpoint}
}

// open opens tracing, and returns its cleanup too, which a test may call early.
func open(t *testing.T, c otlp.Config) (otlp.Tracing, func(), *test.Hook) {
	t.Helper()
	logger, lines := test.NewNullLogger()
	tracing, cleanup, err := otlp.Open(t.Context(), c, logrus.NewEntry(logger))
	if err != nil {
		t.Fatal(err)
	}
	return tracing, cleanup, lines
}

func TestSpansArrive(t *testing.T) {
	for _, protocol := range []string{"http", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			collector := otlptest.Start(t)
			c := config(collector.Endpoint(protocol))
			c.Protocol, c.Namespace = protocol, "gate"
			c.Headers = "api-key=a%2Cb , X-Tenant=one"
			tracing, cleanup, _ := open(t, c)
			_, span := tracing.Tracer.Start(t.Context(), "work")
			span.End()
			cleanup() // sends the queued spans
			spans := collector.Spans()
			if len(spans) != 1 {
				t.Fatalf("%d spans arrived", len(spans))
			}
			s := spans[0]
			if s.Protocol != protocol || s.GetName() != "work" || s.Headers["api-key"] != "a,b" || s.Headers["x-tenant"] != "one" {
				t.Errorf("%s: %s %v", s.Protocol, s.GetName(), s.Headers)
			}
			if s.Resource["service.name"] != "RateLimit" || s.Resource["service.namespace"] != "gate" ||
				len(s.Resource["service.instance.id"]) != 36 || s.Resource["service.instance.id"][14] != '4' {
				t.Errorf("resource: %v", s.Resource)
			}
		})
	}
}

func TestNamesOfTheService(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other")
	collector := otlptest.Start(t)
	c := config("http://localhost:1")
	c.TracesEndpoint, c.InstanceID = collector.HTTP+"/v1/traces", "seven"
	c.Headers, c.TracesHeaders = "k=general", "k=special"
	tracing, cleanup, _ := open(t, c)
	_, span := tracing.Tracer.Start(t.Context(), "work")
	span.End()
	cleanup()
	s := collector.Await(t, otlptest.Named("work"))
	if s.Resource["service.name"] != "RateLimit" || s.Resource["service.instance.id"] != "seven" ||
		s.Resource["deployment.environment.name"] != "test" || s.Headers["k"] != "special" {
		t.Errorf("%v %v", s.Resource, s.Headers)
	}
}

const traceID, parentID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

// TestParents continues traces that callers began, in each form, and does as
// they do about sampling.
func TestParents(t *testing.T) {
	w3c := func(flags string) map[string]string {
		return map[string]string{"Traceparent": "00-" + traceID + "-" + parentID + "-" + flags}
	}
	for name, c := range map[string]struct {
		headers map[string]string
		rate    float64
		only    string // OTEL_PROPAGATORS
		known   bool
		sampled bool
	}{
		"W3C sampled, none of ours":     {w3c("01"), 0, "", true, true},
		"W3C not sampled, all of ours":  {w3c("00"), 1, "", true, false},
		"B3 single":                     {map[string]string{"B3": traceID + "-" + parentID + "-1"}, 0, "", true, true},
		"B3 single, not sampled":        {map[string]string{"B3": traceID + "-" + parentID + "-0"}, 1, "", true, false},
		"B3 multi":                      {map[string]string{"X-B3-Traceid": traceID, "X-B3-Spanid": parentID, "X-B3-Sampled": "1"}, 0, "", true, true},
		"none, all of ours":             {nil, 1, "", false, true},
		"none, none of ours":            {nil, 0, "", false, false},
		"malformed":                     {map[string]string{"Traceparent": "00-zz-01"}, 1, "", false, true},
		"W3C where only B3 is taken":    {w3c("01"), 1, "b3", false, true},
		"B3 where it is asked for":      {map[string]string{"B3": traceID + "-" + parentID + "-1"}, 0, "b3multi", true, true},
		"W3C where nothing is taken":    {w3c("01"), 1, "none", false, true},
		"W3C beside another B3 (Envoy)": {map[string]string{"Traceparent": w3c("01")["Traceparent"], "B3": strings.Repeat("1", 32) + "-" + parentID + "-0"}, 0, "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(otlptest.Start(t).HTTP)
			cfg.SamplingRate = c.rate
			if c.only != "" {
				cfg.Propagators = []string{c.only}
			}
			tracing, cleanup, _ := open(t, cfg)
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
				t.Errorf("trace %s, sampled %v", got.TraceID(), got.IsSampled())
			}
		})
	}
}

// TestPassedOn hands the trace on as W3C says, whatever form it came in.
func TestPassedOn(t *testing.T) {
	tracing, cleanup, _ := open(t, config(otlptest.Start(t).HTTP))
	defer cleanup()
	ctx, span := tracing.Tracer.Start(t.Context(), "work")
	defer span.End()
	passed := propagation.MapCarrier{}
	tracing.Propagator.Inject(ctx, passed)
	if len(passed) != 1 || !strings.Contains(passed["traceparent"], span.SpanContext().TraceID().String()) {
		t.Errorf("%v", passed)
	}
}

// TestSamplingRate samples about as many as it says.
func TestSamplingRate(t *testing.T) {
	c := config(otlptest.Start(t).HTTP)
	c.SamplingRate = 0.5
	tracing, cleanup, _ := open(t, c)
	defer cleanup()
	sampled := 0
	for range 1000 {
		_, span := tracing.Tracer.Start(t.Context(), "work")
		if span.SpanContext().IsSampled() {
			sampled++
		}
	}
	if sampled < 350 || sampled > 650 { // nine standard deviations
		t.Errorf("%d of 1000", sampled)
	}
}

// TestCollectorAway fills the queue many times over while the collector does not answer: calls do
// not wait, and Open's cleanup returns in time.
func TestCollectorAway(t *testing.T) {
	for _, protocol := range []string{"http", "grpc"} {
		for name, endpoint := range map[string]string{"nobody there": refusing(t), "silent": silent(t)} {
			t.Run(protocol+", "+name, func(t *testing.T) {
				t.Parallel()
				c := config(endpoint)
				c.Protocol = protocol
				tracing, cleanup, _ := open(t, c)
				for range 10_000 {
					_, span := tracing.Tracer.Start(t.Context(), "work")
					span.End()
				}
				ended := make(chan struct{})
				go func() {
					cleanup()
					close(ended)
				}()
				select {
				case <-ended:
				case <-time.After(30 * time.Second):
					t.Fatal("the cleanup hangs")
				}
			})
		}
	}
}

// refusing returns the URL of a port without a listener.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // only its port was wanted
	return "http://" + l.Addr().String()
}

// silent returns the URL of a listener that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the test is over
	return "http://" + l.Addr().String()
}

func TestOff(t *testing.T) {
	tracing, cleanup, err := otlp.Open(t.Context(), otlp.Config{}, nil)
	if err != nil || tracing.Enabled() {
		t.Errorf("enabled %v, %v", tracing.Enabled(), err)
	}
	cleanup()
}

func TestLogLinesNameTheirTrace(t *testing.T) {
	logger, lines := test.NewNullLogger()
	log := logrus.NewEntry(logger)
	tracing, cleanup, err := otlp.Open(t.Context(), config(otlptest.Start(t).HTTP), log)
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	ctx, span := tracing.Tracer.Start(t.Context(), "work")
	defer span.End()
	log.WithContext(ctx).Warn("in a call")
	line := lines.LastEntry().Data
	if line["trace_id"] != span.SpanContext().TraceID().String() || line["span_id"] != span.SpanContext().SpanID().String() {
		t.Errorf("%v", line)
	}
	log.WithContext(context.Background()).Warn("outside of one")
	if line := lines.LastEntry().Data; len(line) != 0 {
		t.Errorf("%v", line)
	}
}

func TestValidate(t *testing.T) {
	good := otlp.Config{Enabled: true, Protocol: "grpc", SamplingRate: 0.5, Endpoint: "https://c:4317", Headers: "a=b, c=%20d", Propagators: []string{"b3", "tracecontext"}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	off := otlp.Config{Protocol: "http", Endpoint: "c:4317"}
	if err := off.Validate(); err != nil {
		t.Errorf("where tracing is off, the standard variables are nobody's: %v", err)
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
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), variable) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

// errSecret is what an error's text may hold.
var errSecret = fmt.Errorf("query: %w", errors.New("the password is hunter2"))

func only(t *testing.T, c *otlptest.Collector, name string) otlptest.Span {
	t.Helper()
	s := c.Await(t, otlptest.Named(name))
	if strings.Contains(s.Span.String(), "hunter2") {
		t.Errorf("the span tells a secret: %v", s.Span)
	}
	return s
}

// call makes the span of a call, and does with its context.
func call(tracing otlp.Tracing, do func(ctx context.Context)) trace.SpanContext {
	ctx, span := tracing.Tracer.Start(context.Background(), "call")
	defer span.End()
	do(ctx)
	return span.SpanContext()
}
