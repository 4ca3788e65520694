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

// startSpan starts the span of a call to another system. It returns a nil span if the current call
// is not sampled or does not exist, so that an unsampled call costs little.
func (t Tracing) startSpan(
	ctx context.Context, name string, attributes ...attribute.KeyValue,
) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nil
	}
	return t.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

// endSpan ends a span. It records only the kind of an error, because the text may contain secrets.
// A nil span is a no-op.
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
