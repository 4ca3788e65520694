package ratelimitapi

import (
	"context"
	"crypto/rand"

	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc/metadata"

	"github.com/tollgate-dev/tollgate/core/requestid"
)

// fieldRequestID names a request in log lines.
const fieldRequestID = "request_id"

// grpcRequestID returns the id that the caller gave its call, empty when there
// is none. Envoy gives that of the request it asks about.
func grpcRequestID(ctx context.Context) string {
	ids := metadata.ValueFromIncomingContext(ctx, "x-request-id") // requestid.Header
	if len(ids) == 0 || !requestid.Valid(ids[0]) {
		return ""
	}
	return ids[0]
}

// nameRequest puts the id of a request into its answer: the caller's, or one
// made here.
func nameRequest(c *fasthttp.RequestCtx) {
	id := string(c.Request.Header.Peek(requestid.Header))
	if !requestid.Valid(id) {
		var random [12]byte
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		id = requestid.Of(random)
	}
	c.Response.Header.Set(requestid.Header, id)
}

func webRequestID(c *fasthttp.RequestCtx) string {
	return string(c.Response.Header.Peek(requestid.Header))
}

// grpcLog returns the log for lines about a gRPC call.
func (s *service) grpcLog(ctx context.Context) *logrus.Entry {
	log := s.log.WithContext(ctx)
	if id := grpcRequestID(ctx); id != "" {
		log = log.WithField(fieldRequestID, id)
	}
	return log
}

// webLog returns the log for lines about an HTTP request.
func (s *service) webLog(c *fasthttp.RequestCtx) *logrus.Entry {
	return s.log.WithContext(contextOf(c)).WithField(fieldRequestID, webRequestID(c))
}
