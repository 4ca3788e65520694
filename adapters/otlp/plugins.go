package otlp

import (
	"context"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

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
	t.Propagator.Inject(ctx, outgoing(md))
	err := next(metadata.NewOutgoingContext(ctx, md), "/"+method, request, answer, conn, options...)
	span.SetAttributes(semconv.RPCResponseStatusCode(status.Code(err).String()))
	endSpan(span, err)
	return err
}

// outgoing adapts gRPC metadata to a propagator.
type outgoing metadata.MD

func (o outgoing) Get(key string) string { return strings.Join(metadata.MD(o).Get(key), ",") }

func (o outgoing) Set(key, value string) { metadata.MD(o).Set(key, value) }

func (o outgoing) Keys() []string {
	keys := make([]string, 0, len(o))
	for key := range o {
		keys = append(keys, key)
	}
	return keys
}
