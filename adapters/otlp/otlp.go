// Package otlp sends the spans of calls to an OTLP collector, and adds trace IDs to log lines. If
// tracing is off, it does nothing. The listeners create the spans of incoming requests. This
// package creates the spans of outgoing calls to the counter store, the database and plugins.
package otlp

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/counter"
)

// flushTimeout is how long the service waits at its end until the collector has received the queued
// spans.
const flushTimeout = 5 * time.Second

// scope is the instrumentation scope of the spans.
const scope = "github.com/tollgate-dev/tollgate"

// Tracing creates spans. The zero value is off.
type Tracing struct {
	Tracer     trace.Tracer // nil if tracing is off
	Propagator propagation.TextMapPropagator
}

// Enabled reports whether tracing is on.
func (t Tracing) Enabled() bool { return t.Tracer != nil }

// Open starts to send spans, if tracing is on, and adds trace IDs to log lines that have the
// context of a call. It succeeds and calls stay fast even if the collector does not answer: spans
// wait in a queue of limited length (OTEL_BSP_MAX_QUEUE_SIZE) and are dropped when it is full. The
// returned function sends the queued spans, for at most 5 seconds.
func Open(ctx context.Context, c Config, log *logrus.Entry) (Tracing, func(), error) {
	if !c.Enabled {
		return Tracing{}, func() {}, nil
	}
	propagator, err := c.newPropagator()
	if err != nil {
		return Tracing{}, nil, err
	}
	exporter, err := c.newExporter(ctx)
	if err != nil {
		return Tracing{}, nil, err
	}
	described, err := c.newResource(ctx)
	if err != nil {
		return Tracing{}, nil, err
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(&reportingExporter{SpanExporter: exporter, log: log, now: time.Now}),
		sdk.WithResource(described),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(c.SamplingRate))),
	)
	log.Logger.AddHook(logHook{})
	cleanup := func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.WithError(err).Warn("the last trace spans could not be sent to the collector and are lost")
		}
	}
	return Tracing{provider.Tracer(scope), propagator}, cleanup, nil
}

func (c Config) newExporter(ctx context.Context) (exporter *otlptrace.Exporter, err error) {
	if c.Protocol == overGRPC {
		exporter, err = otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(c.endpointURL()),
			otlptracegrpc.WithHeaders(c.exporterHeaders()))
	} else {
		exporter, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.endpointURL()),
			otlptracehttp.WithHeaders(c.exporterHeaders()))
	}
	if err != nil {
		return nil, fmt.Errorf("span exporter: %w", err)
	}
	return exporter, nil
}

// newResource returns the resource that identifies the service: OTEL_RESOURCE_ATTRIBUTES, which the
// TRACING_SERVICE_* variables override.
func (c Config) newResource(ctx context.Context) (*resource.Resource, error) {
	instance := cmp.Or(c.InstanceID, uuid.NewString())
	options := []resource.Option{
		resource.WithTelemetrySDK(), resource.WithFromEnv(),
		resource.WithAttributes(semconv.ServiceName(c.ServiceName), semconv.ServiceInstanceID(instance)),
	}
	if c.Namespace != "" {
		options = append(options, resource.WithAttributes(semconv.ServiceNamespace(c.Namespace)))
	}
	described, err := resource.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return described, nil
}

func (c Config) newPropagator() (propagation.TextMapPropagator, error) {
	if len(c.Propagators) > 0 {
		named, err := autoprop.TextMapPropagator(c.Propagators...)
		if err != nil {
			return nil, fmt.Errorf("OTEL_PROPAGATORS: %w", err)
		}
		return named, nil
	}
	w3c := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	return manyToOne{
		TextMapPropagator: w3c,
		// the last format that is present wins
		taken: propagation.NewCompositeTextMapPropagator(b3.New(), w3c),
	}, nil
}

// manyToOne reads the trace context in several formats and writes it in one.
type manyToOne struct {
	propagation.TextMapPropagator
	taken propagation.TextMapPropagator
}

func (m manyToOne) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	return m.taken.Extract(ctx, carrier)
}

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

// PluginCall creates a span for a call to a plugin, and passes the trace on to it. It is a
// grpc.UnaryClientInterceptor.
func (t Tracing) PluginCall( //nolint:revive // the library's signature
	ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, next grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	method = strings.TrimPrefix(method, "/")
	ctx, span := t.startSpan(ctx, method, semconv.RPCSystemNameGRPC, semconv.RPCMethod(method))
	if span == nil {
		return next(ctx, "/"+method, request, answer, conn, options...)
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	md = md.Copy()
	t.Propagator.Inject(ctx, httpconn.MetadataCarrier(md))
	err := next(metadata.NewOutgoingContext(ctx, md), "/"+method, request, answer, conn, options...)
	span.SetAttributes(semconv.RPCResponseStatusCode(status.Code(err).String()))
	endSpan(span, err)
	return err
}

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
