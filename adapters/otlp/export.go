package otlp

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// reportEvery is the minimum time between two log lines about spans that could not be sent.
const reportEvery = time.Minute

// reportingExporter logs failures at most once per reportEvery. The global error handler of the
// library would write each failure to standard error. The library calls ExportSpans from one
// goroutine.
type reportingExporter struct {
	sdk.SpanExporter
	log      *logrus.Entry
	now      func() time.Time
	reported time.Time
	lost     int // spans since the last log line
}

// ExportSpans implements the exporter interface. It always returns nil: spans that could not be
// sent are dropped.
func (e *reportingExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.lost += len(spans)
	if now := e.now(); now.Sub(e.reported) >= reportEvery {
		e.log.WithError(err).WithField("spans", e.lost).
			Warn("trace spans could not be sent to the collector and are lost")
		e.reported, e.lost = now, 0
	}
	return nil
}
