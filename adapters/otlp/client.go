package otlp

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// begin begins the span of something that a call asks of another system. It
// returns nil where the call is not sampled or there is none: such a span would
// tell of nobody's call, and a call that is not sampled is to cost little.
func (t Tracing) startSpan(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nil
	}
	return t.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

// end ends the span of begin. Of an error only the kind is told: its text may
// quote what is secret.
func endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		kind := errorType(err)
		span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		span.SetStatus(codes.Error, kind)
	}
	span.End()
}

func errorType(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Kind.String()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	}
	return fmt.Sprintf("%T", err)
}
