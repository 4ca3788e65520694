// Package otlp sends the spans of calls to an OTLP collector, and adds trace IDs to log lines. If
// tracing is off, it does nothing. The listeners create the spans of incoming requests. This
// package creates the spans of outgoing calls to the counter store, the database and plugins.
package otlp

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
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
