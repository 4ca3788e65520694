// Package otlptest provides an OTLP collector for tests. It receives spans by gRPC and by HTTP with
// protobuf, and keeps them for the test.
package otlptest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/tollgate-dev/tollgate/test/await"
)

// Span is a received span.
type Span struct {
	*tracepb.Span
	Attributes map[string]string
	Resource   map[string]string
	Headers    map[string]string // of the export request, with lower-case names
	Protocol   string            // grpc or http
}

// Collector is a running collector.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer
	HTTP string // base URLs for OTEL_EXPORTER_OTLP_ENDPOINT
	GRPC string

	mu    sync.Mutex
	spans []Span
}

// Start starts a collector that runs until the test ends.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	web := httptest.NewServer(c)
	t.Cleanup(web.Close)
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(l) }() // ended by Stop
	t.Cleanup(server.Stop)
	c.HTTP, c.GRPC = web.URL, "http://"+l.Addr().String()
	return c
}

// Endpoint returns the base URL for a protocol, http or grpc.
func (c *Collector) Endpoint(protocol string) string {
	if protocol == "grpc" {
		return c.GRPC
	}
	return c.HTTP
}

// Spans returns all spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Await returns the first span that matches. It fails the test if no span arrives.
func (c *Collector) Await(t testing.TB, matches func(Span) bool) Span {
	t.Helper()
	defer func() {
		for _, s := range c.Spans() {
			if t.Failed() {
				t.Logf("arrived: %s %v", s.GetName(), s.Attributes)
			}
		}
	}()
	var found Span
	await.Until(t, "a span", func() bool {
		spans := c.Spans()
		i := slices.IndexFunc(spans, matches)
		if i >= 0 {
			found = spans[i]
		}
		return i >= 0
	})
	return found
}

// Named matches spans by name.
func Named(name string) func(Span) bool {
	return func(s Span) bool { return s.GetName() == name }
}

// Export receives spans by gRPC. It implements collectorpb.TraceServiceServer.
func (c *Collector) Export(
	ctx context.Context, r *collectorpb.ExportTraceServiceRequest,
) (*collectorpb.ExportTraceServiceResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	headers := map[string]string{}
	for name, values := range md {
		headers[name] = strings.Join(values, ",")
	}
	c.take(r, headers, "grpc")
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

// ServeHTTP receives spans by HTTP with protobuf.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m collectorpb.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" ||
		proto.Unmarshal(body, &m) != nil {
		http.Error(w, "not spans", http.StatusBadRequest)
		return
	}
	headers := map[string]string{}
	for name := range r.Header {
		headers[strings.ToLower(name)] = r.Header.Get(name)
	}
	c.take(&m, headers, "http")
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) take(r *collectorpb.ExportTraceServiceRequest, headers map[string]string, protocol string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range r.GetResourceSpans() {
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{
					s, plain(s.GetAttributes()), plain(from.GetResource().GetAttributes()), headers, protocol,
				})
			}
		}
	}
}

func plain(list []*commonpb.KeyValue) map[string]string {
	values := map[string]string{}
	for _, a := range list {
		if number, ok := a.GetValue().GetValue().(*commonpb.AnyValue_IntValue); ok {
			values[a.GetKey()] = strconv.FormatInt(number.IntValue, 10)
		} else {
			values[a.GetKey()] = a.GetValue().GetStringValue()
		}
	}
	return values
}
