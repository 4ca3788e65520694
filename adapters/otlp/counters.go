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

// Add implements counter.Store.
func (c *Counters) Add(ctx context.Context, hits []counter.Hit, after []uint64) error {
	ctx, span := c.tracing.startSpan(ctx, "counters.add", c.system, semconv.DBOperationBatchSize(len(hits)))
	err := c.Store.Add(ctx, hits, after)
	endSpan(span, err)
	return err
}

// AddUnlessOver implements counter.Store.
func (c *Counters) AddUnlessOver(ctx context.Context, hits []counter.Hit, after []uint64) error {
	ctx, span := c.tracing.startSpan(ctx, "counters.add_unless_over", c.system, semconv.DBOperationBatchSize(len(hits)))
	err := c.Store.AddUnlessOver(ctx, hits, after)
	endSpan(span, err)
	return err
}

// Admit implements counter.Admitter.
func (c *Counters) Admit(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	ctx, span := c.tracing.startSpan(ctx, "counters.admit", c.system, semconv.DBOperationBatchSize(len(hits)))
	err := c.Store.Admit(ctx, hits, results)
	endSpan(span, err)
	return err
}

// AdmitAll implements counter.Admitter.
func (c *Counters) AdmitAll(ctx context.Context, hits []counter.Hit, results []counter.Admitted) error {
	ctx, span := c.tracing.startSpan(ctx, "counters.admit_all", c.system, semconv.DBOperationBatchSize(len(hits)))
	err := c.Store.AdmitAll(ctx, hits, results)
	endSpan(span, err)
	return err
}
