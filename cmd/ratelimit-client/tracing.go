package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/adapters/otlp"
)

// startSpan starts the span of a call and adds its trace to the headers of the call. The protocol
// is http, grpc, or empty for no span; the OTEL_EXPORTER_OTLP_* variables contain the address of
// the collector. The returned function ends the span and sends it.
func startSpan(ctx context.Context, protocol string, errs io.Writer) (context.Context, func(), error) {
	if protocol == "" {
		return ctx, func() {}, nil
	}
	c := otlp.Config{
		Enabled: true, Protocol: protocol, ServiceName: "RateLimitClient", SamplingRate: 1,
		Endpoint:       os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"),
		TracesEndpoint: os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
		Headers:        os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"),
		TracesHeaders:  os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
	}
	if err := c.Validate(); err != nil {
		return nil, nil, fmt.Errorf("-oltp-protocol: %w", err)
	}
	log := logrus.New()
	log.SetOutput(errs)
	tracing, flush, err := otlp.Open(ctx, c, logrus.NewEntry(log))
	if err != nil {
		return nil, nil, fmt.Errorf("-oltp-protocol: %w", err)
	}
	ctx, span := tracing.Tracer.Start(ctx, "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		trace.WithSpanKind(trace.SpanKindClient))
	headers := propagation.MapCarrier{}
	tracing.Propagator.Inject(ctx, headers)
	for name, value := range headers {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	return ctx, func() { span.End(); flush() }, nil
}
