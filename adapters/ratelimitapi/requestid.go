package ratelimitapi

import (
	"context"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/core/requestid"
)

// The names of the request id.
const (
	fieldRequestID   = "request_id"   // in log lines
	grpcRequestIDKey = "x-request-id" // in gRPC metadata: requestid.Header as HTTP/2 writes it
)

// grpcRequestID returns the id that the caller sent; empty for no valid id. Envoy sends the id of
// the request that it checks.
func grpcRequestID(ctx context.Context) string {
	ids := metadata.ValueFromIncomingContext(ctx, grpcRequestIDKey)
	if len(ids) == 0 || !requestid.Valid(ids[0]) {
		return ""
	}
	return ids[0]
}

// grpcLog returns the log for lines about a gRPC call. It sets the request id in the line and in
// the response. Calls without log lines get no request id, because it would slow them down.
func (s *service) grpcLog(ctx context.Context) *logrus.Entry {
	id := requestid.FromContext(ctx)
	if id == "" {
		id = setCallID(ctx)
	}
	return s.log.WithContext(ctx).WithField(fieldRequestID, id)
}

// setCallID sets the request id in the response to a gRPC call and returns it: the id that the
// caller sent, or a random one.
func setCallID(ctx context.Context) string {
	id := httpconn.RequestID(grpcRequestID(ctx))
	_ = grpc.SetHeader(ctx, metadata.Pairs(grpcRequestIDKey, id)) // fails after the first message of a stream
	return id
}

// httpLog returns the log for lines about an HTTP request.
func (s *service) httpLog(c *fasthttp.RequestCtx) *logrus.Entry {
	return s.log.WithContext(contextOf(c)).WithField(fieldRequestID, httpconn.RequestIDOf(c))
}
