package otlp

import (
	"context"
	"database/sql"
	"errors"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Queries is a query hook that creates a span for each query. The span does not contain the text of
// the query, because Bun writes the values into it.
type Queries struct{ tracing Tracing }

// NewQueries returns the hook, or nil if tracing is off.
func NewQueries(t Tracing) bun.QueryHook {
	if !t.Enabled() {
		return nil
	}
	return &Queries{t}
}

// querySpan is the key of the span in the stash of a query event.
type querySpan struct{}

// BeforeQuery implements bun.QueryHook. It starts the span of a query.
func (q *Queries) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	operation := e.Operation()
	ctx, span := q.tracing.startSpan(ctx, operation, databaseSystem(e.DB), semconv.DBOperationName(operation))
	if span == nil {
		return ctx
	}
	if e.Stash == nil {
		e.Stash = map[any]any{}
	}
	e.Stash[querySpan{}] = span
	return ctx
}

// AfterQuery implements bun.QueryHook. It ends the span.
func (q *Queries) AfterQuery(_ context.Context, e *bun.QueryEvent) {
	span, _ := e.Stash[querySpan{}].(trace.Span)
	err := e.Err
	if errors.Is(err, sql.ErrNoRows) { // not a failure
		err = nil
	}
	endSpan(span, err)
}

func databaseSystem(db *bun.DB) attribute.KeyValue {
	switch db.Dialect().Name() {
	case dialect.PG:
		return semconv.DBSystemNamePostgreSQL
	case dialect.SQLite:
		return semconv.DBSystemNameSQLite
	default:
		return semconv.DBSystemNameOtherSQL
	}
}
