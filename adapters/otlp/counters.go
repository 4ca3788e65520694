package otlp

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Counters creates a span for each call to a counter store, and passes the call on.
type Counters struct {
	counter.Store
	tracing Tracing
	system  attribute.KeyValue
}

// Counters returns a store whose calls are traced. System is the kind of database, the value of
// db.system.name in the semantic conventions.
func (t Tracing) Counters(store counter.Store, system string) *Counters {
	return &Counters{store, t, semconv.DBSystemNameKey.String(system)}
}

// Count implements counter.Store.
func (c *Counters) Count(ctx context.Context, hits []counter.Hit, results []counter.Result, m counter.Mode) error {
	name := "counters." + counter.Operation(hits, m)
	ctx, span := c.tracing.startSpan(ctx, name, c.system, semconv.DBOperationBatchSize(len(hits)))
	err := c.Store.Count(ctx, hits, results, m)
	endSpan(span, err)
	return err
}
