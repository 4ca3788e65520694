package otlp

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// reportEvery is how often a collector that is away is told of at most.
const reportEvery = time.Minute

// reportingExporter logs failures, now and then, instead of handing them to the
// library's process-wide handler, which writes each to standard error. The
// library exports from one goroutine at a time.
type reportingExporter struct {
	sdk.SpanExporter
	log      *logrus.Entry
	now      func() time.Time
	reported time.Time
	lost     int // spans since reported
}

// ExportSpans sends spans. It never fails: what could not be sent is dropped.
func (e *reportingExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	e.lost += len(spans)
	if now := e.now(); now.Sub(e.reported) >= reportEvery {
		e.log.WithError(err).WithField("spans", e.lost).Warn("spans were not sent")
		e.reported, e.lost = now, 0
	}
	return nil
}
