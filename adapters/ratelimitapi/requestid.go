package ratelimitapi

import (
	"context"
	"crypto/rand"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/core/requestid"
)

// The names of a request's id.
const (
	fieldRequestID   = "request_id"   // in log lines
	grpcRequestIDKey = "x-request-id" // in gRPC metadata: requestid.Header as HTTP/2 writes it
)

// grpcRequestID returns the id that the caller gave its call, empty when there
// is none. Envoy gives that of the request it asks about.
func grpcRequestID(ctx context.Context) string {
	ids := metadata.ValueFromIncomingContext(ctx, grpcRequestIDKey)
	if len(ids) == 0 || !requestid.Valid(ids[0]) {
		return ""
	}
	return ids[0]
}

// newRequestID names a request that its caller has not named.
func newRequestID() string {
	var random [12]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return requestid.Of(random)
}

// nameRequest puts the id of a request into its answer: the caller's, or one
// made here.
func setRequestID(c *fasthttp.RequestCtx) {
	id := string(c.Request.Header.Peek(requestid.Header))
	if !requestid.Valid(id) {
		id = newRequestID()
	}
	c.Response.Header.Set(requestid.Header, id)
}

func httpRequestID(c *fasthttp.RequestCtx) string {
	return string(c.Response.Header.Peek(requestid.Header))
}

// grpcLog returns the log for lines about a gRPC call. They name it, and so does
// its answer: a call that nothing is logged of needs no name, and is not slowed
// down by one.
func (s *service) grpcLog(ctx context.Context) *logrus.Entry {
	id := requestid.FromContext(ctx)
	if id == "" {
		id = setCallID(ctx)
	}
	return s.log.WithContext(ctx).WithField(fieldRequestID, id)
}

// nameCall returns the id of a gRPC call, the caller's or one made here, and puts it into the answer.
func setCallID(ctx context.Context) string {
	id := grpcRequestID(ctx)
	if id == "" {
		id = newRequestID()
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs(grpcRequestIDKey, id)) // fails once a stream has begun to answer
	return id
}

// webLog returns the log for lines about an HTTP request.
func (s *service) httpLog(c *fasthttp.RequestCtx) *logrus.Entry {
	return s.log.WithContext(contextOf(c)).WithField(fieldRequestID, httpRequestID(c))
}
