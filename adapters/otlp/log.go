package otlp

import (
	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/trace"
)

// logHook names the trace and the span in log lines that carry a call's
// context.
type logHook struct{}

func (logHook) Levels() []logrus.Level { return logrus.AllLevels }

func (logHook) Fire(e *logrus.Entry) error {
	if e.Context == nil {
		return nil
	}
	if span := trace.SpanContextFromContext(e.Context); span.IsValid() {
		e.Data["trace_id"] = span.TraceID().String()
		e.Data["span_id"] = span.SpanID().String()
	}
	return nil
}
