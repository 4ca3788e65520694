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

// TestCarrier reads one field, a field on several lines, and an empty header with propagators.
func TestCarrier(t *testing.T) {
	var h fasthttp.RequestHeader
	h.Add("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	h.Add("Baggage", "a=1")
	h.Add("Baggage", "b=2")
	carrier := httpconn.NewTraceCarrier(&h)
	ctx := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}).Extract(t.Context(), carrier)
	if got := trace.SpanContextFromContext(ctx).TraceID().String(); got != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("trace %s", got)
	}
	if b := baggage.FromContext(ctx); b.Member("a").Value() != "1" || b.Member("b").Value() != "2" {
		t.Errorf("baggage %s", b)
	}
	keys, values := carrier.Keys(), carrier.Values("Baggage")
	h.Reset()
	h.Add("Traceparent", "00-another") // in the same memory
	h.Add("Baggage", "c=3")
	if !slices.Equal(values, []string{"a=1", "b=2"}) {
		t.Errorf("values %q", values)
	}
	for _, name := range []string{"Traceparent", "Baggage"} {
		if !slices.Contains(keys, name) {
			t.Errorf("no key %s in %v", name, keys)
		}
	}
	var empty fasthttp.RequestHeader
	if ctx := (propagation.TraceContext{}).Extract(t.Context(), httpconn.NewTraceCarrier(&empty)); trace.SpanContextFromContext(ctx).IsValid() {
		t.Error("an empty header has a trace")
	}
}

func TestSetField(t *testing.T) {
	var h fasthttp.RequestHeader
	httpconn.NewTraceCarrier(&h).Set("Traceparent", "x")
	if got := string(h.Peek("traceparent")); got != "x" {
		t.Errorf("set to %q", got)
	}
}
