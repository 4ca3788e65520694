package ratelimitapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
	"github.com/tollgate-dev/tollgate/core/requestid"
)

// service serves the calls of both transports.
type service struct {
	ratelimitpb.UnimplementedRateLimitServiceServer
	decisions decide.Func
	// recordCall counts a call of ShouldRateLimit, by gRPC or by /json, and how long it took.
	recordCall func(took time.Duration)
	headers    HeaderConfig
	// dynamicMetadata adds metadata to responses.
	dynamicMetadata bool
	// setRequestIDs sets the request id of every gRPC call, for the debug log.
	setRequestIDs bool
	log           *logrus.Entry
	requests      requestPool
}

// decide converts the request and returns the decision of the core.
func (s *service) decide(ctx context.Context, m *ratelimitpb.RateLimitRequest) (ratelimit.Decision, error) {
	return s.decideRequest(ctx, s.requests.convert(m))
}

// decideRequest returns the decision of the core, and releases the request.
func (s *service) decideRequest(ctx context.Context, q *coreRequest) (ratelimit.Decision, error) {
	began := time.Now()
	d, err := s.decisions(ctx, &q.request)
	s.requests.release(q)
	s.recordCall(time.Since(began))
	return d, err
}

// logRefusal logs an error and returns the response to it.
func (s *service) logRefusal(log *logrus.Entry, err error) refusal {
	r := classifyError(err)
	if r.grpc == codes.Internal {
		log.WithError(err).Error("a rate limit call failed")
	} else {
		log.WithError(err).Debug("a rate limit call was refused")
	}
	return r
}

// withRequestID sets the request id of a call for the debug log.
func (s *service) withRequestID(ctx context.Context) context.Context {
	if s.setRequestIDs {
		return requestid.NewContext(ctx, setCallID(ctx))
	}
	return ctx
}

// grpcError logs an error and returns the status of the call.
func (s *service) grpcError(ctx context.Context, err error) error {
	r := s.logRefusal(s.grpcLog(ctx), err)
	return grpcstatus.Error(r.grpc, r.message)
}

// ShouldRateLimit implements the v3 rate limit protocol.
func (s *service) ShouldRateLimit(
	ctx context.Context, m *ratelimitpb.RateLimitRequest,
) (*ratelimitpb.RateLimitResponse, error) {
	ctx = s.withRequestID(ctx)
	d, err := s.decide(ctx, m)
	if err != nil {
		return nil, s.grpcError(ctx, err)
	}
	answer := newResponse(&d, s.headers.fields(m, &d))
	answer.DynamicMetadata = newStruct(s.newMetadata(m, &d))
	return answer, nil
}

// refusal is an error response of both transports.
type refusal struct {
	grpc    codes.Code
	http    int
	message string
}

// classifyError maps an error to a response (contract L-26, L-27). It is the only such mapping. The
// response does not contain the cause of an internal error.
func classifyError(err error) refusal {
	f, ok := fault.As(err)
	if !ok {
		return classifyUnknown(err)
	}
	switch f.Kind {
	case fault.Invalid:
		return refusal{codes.InvalidArgument, http.StatusBadRequest, f.Message}
	case fault.Exhausted:
		return refusal{codes.ResourceExhausted, http.StatusServiceUnavailable, f.Message}
	case fault.Unavailable:
		if f.Code == decide.CodeNoConfiguration {
			return refusal{codes.FailedPrecondition, http.StatusServiceUnavailable, f.Message}
		}
		return refusal{codes.Unavailable, http.StatusServiceUnavailable, f.Message}
	default:
		return refusal{codes.Internal, http.StatusInternalServerError, "internal error"}
	}
}

// classifyUnknown maps an error that is not a fault. Its deadline is the deadline of the call. The
// deadline in a fault may be one of the service, for example KVSTORE_TIMEOUT.
func classifyUnknown(err error) refusal {
	switch {
	case errors.Is(err, context.Canceled):
		return refusal{codes.Canceled, http.StatusServiceUnavailable, "the call was canceled"}
	case errors.Is(err, context.DeadlineExceeded):
		return refusal{codes.DeadlineExceeded, http.StatusServiceUnavailable, "the call's deadline has passed"}
	default:
		return refusal{codes.Internal, http.StatusInternalServerError, "internal error"}
	}
}
