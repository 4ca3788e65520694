package httpconn_test

import (
	"slices"
	"testing"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
)

// TestCarrier checks that propagators can read a field, a field on several lines, and an empty
// header.
func TestCarrier(t *testing.T) {
	var h fasthttp.RequestHeader
	h.Add("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	h.Add("Baggage", "a=1")
	h.Add("Baggage", "b=2")
	carrier := httpconn.NewTraceCarrier(&h)
	ctx := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}).
		Extract(t.Context(), carrier)
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("the trace id is %s", got)
	}
	if b := baggage.FromContext(ctx); b.Member("a").Value() != "1" || b.Member("b").Value() != "2" {
		t.Errorf("the baggage is %s", b)
	}
	keys, values := carrier.Keys(), carrier.Values("Baggage")
	h.Reset()
	h.Add("Traceparent", "00-another") // reuses the memory of the first fields
	h.Add("Baggage", "c=3")
	if !slices.Equal(values, []string{"a=1", "b=2"}) {
		t.Errorf("the values of Baggage are %q after a reset of the header", values)
	}
	for _, name := range []string{"Traceparent", "Baggage"} {
		if !slices.Contains(keys, name) {
			t.Errorf("no key %s in %v", name, keys)
		}
	}
	var empty fasthttp.RequestHeader
	if ctx := (propagation.TraceContext{}).Extract(t.Context(),
		httpconn.NewTraceCarrier(&empty)); trace.SpanContextFromContext(ctx).IsValid() {
		t.Error("the context of an empty header contains a trace")
	}
}

func TestSetField(t *testing.T) {
	var h fasthttp.RequestHeader
	httpconn.NewTraceCarrier(&h).Set("Traceparent", "x")
	if got := string(h.Peek("traceparent")); got != "x" {
		t.Errorf("the field is %q, want \"x\"", got)
	}
}
