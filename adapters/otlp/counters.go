package otlp

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/tollgate-dev/tollgate/ports/counter"
)

// Counters makes spans of what calls ask of a counter store. It changes
// nothing else.
type Counters struct {
	counter.Store
	tracing Tracing
	system  attribute.KeyValue
}

// Counters returns a store whose calls are traced. System names the kind of
// database, as db.system.name of the semantic conventions does.
func (t Tracing) Counters(store counter.Store, system string) *Counters {
	return &Counters{store, t, semconv.DBSystemNameKey.String(system)}
}

// Add counts in a span (counter.Store).
func (c *Counters) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	ctx, span := c.tracing.startSpan(ctx, "counters.add", c.system, semconv.DBOperationBatchSize(len(hits)))
	err := c.Store.Add(ctx, hits, after)
	endSpan(span, err)
	return err
}

// AddUnlessOver counts in a span (counter.Store).
func (c *Counters) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	ctx, span := c.tracing.startSpan(ctx, "counters.add_unless_over", c.system, semconv.DBOperationBatchSize(len(hits)))
	err := c.Store.AddUnlessOver(ctx, hits, after)
	endSpan(span, err)
	return err
}
