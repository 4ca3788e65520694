package ratelimitapi

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/grpc/codes"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
)

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
