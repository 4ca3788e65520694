package otlp

import (
	"context"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
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
	t.Propagator.Inject(ctx, httpconn.MetadataCarrier(md))
	err := next(metadata.NewOutgoingContext(ctx, md), "/"+method, request, answer, conn, options...)
	span.SetAttributes(semconv.RPCResponseStatusCode(status.Code(err).String()))
	endSpan(span, err)
	return err
}
