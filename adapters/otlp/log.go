package otlp

import (
	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/trace"
)

// logHook adds the IDs of the trace and the span to log lines that have the context of a call.
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
