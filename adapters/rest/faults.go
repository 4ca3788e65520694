package rest

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// statuses maps kinds of failure to HTTP statuses. It is the only such table;
// a part's WriteFault may narrow a status, never invent a kind.
var statuses = map[fault.Kind]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.Stale:           http.StatusPreconditionFailed,
	fault.Exhausted:       http.StatusTooManyRequests,
	fault.Unsupported:     http.StatusNotImplemented,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

// protocolKind tells the kind of what the HTTP server itself refuses. The
// status stays the server's own.
func protocolKind(status int) fault.Kind {
	switch {
	case status == http.StatusNotFound:
		return fault.NotFound
	case status == http.StatusServiceUnavailable:
		return fault.Unavailable
	case status >= 400 && status < 500:
		return fault.Invalid
	default:
		return fault.Internal
	}
}

// writeFault answers a failure: status and headers by its kind, the body by
// the part that owns the path. What is internal is logged and not shown.
func (s *Server) writeFault(c *fiber.Ctx, err error) error {
	status, f := classify(err)
	c.Status(status)
	if f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		Log(c, s.log).WithError(err).WithField("path", strings.Clone(c.Path())).Error("request failed")
	}
	if f.Kind == fault.Exhausted || f.Kind == fault.Unavailable {
		setRetryAfter(c, f.RetryAfter)
	}
	if f.Kind == fault.Exhausted {
		s.setExhausted(c, f)
	}
	if challenge, ok := f.Details["challenge"].(string); ok {
		c.Set(fiber.HeaderWWWAuthenticate, challenge)
	} else if status == http.StatusUnauthorized {
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	if part := s.partOf(c.Path()); part != nil {
		return part.WriteFault(c, f)
	}
	return c.JSON(map[string]string{"error": s.strayMessage(status, f)})
}

// strayMessage is what a request is told that belongs to no part. Who came by the
// address alone, as people do first, is shown on.
func (s *Server) strayMessage(status int, f *fault.Error) string {
	if status == http.StatusNotFound && s.pages != nil {
		return f.Message + ": " + s.pages.Path() + " describes the API"
	}
	return f.Message
}

// classify returns the status of an error and the failure to show.
func classify(err error) (int, *fault.Error) {
	var fe *fiber.Error
	if errors.As(err, &fe) {
		return fe.Code, fault.New(protocolKind(fe.Code), "", protocolMessage(fe))
	}
	f, ok := fault.As(err)
	if !ok || f.Kind == fault.Internal {
		return http.StatusInternalServerError, fault.New(fault.Internal, "", "internal error")
	}
	return statuses[f.Kind], f
}

func protocolMessage(e *fiber.Error) string {
	switch e.Code {
	case http.StatusNotFound:
		return "no such path"
	case http.StatusMethodNotAllowed:
		return "method not allowed"
	case http.StatusRequestEntityTooLarge:
		return fmt.Sprintf("body is larger than %d bytes", MaxBody)
	case http.StatusRequestHeaderFieldsTooLarge:
		return fmt.Sprintf("header is larger than %d bytes", maxHeader)
	case http.StatusUnsupportedMediaType:
		return e.Message
	case http.StatusRequestTimeout:
		return "request took too long to arrive"
	default:
		return strings.ToLower(http.StatusText(e.Code))
	}
}

// setRetryAfter writes Retry-After in whole seconds, rounded up, at least one.
func setRetryAfter(c *fiber.Ctx, d time.Duration) {
	c.Set(fiber.HeaderRetryAfter, strconv.Itoa(RetrySeconds(d)))
}

// setExhausted sets the limit's headers to the limit that is used up, which need not be the one
// that every request counts against: nothing remains until the caller may try again
// (contract A-53). The detail "limit" has the size of that limit.
func (s *Server) setExhausted(c *fiber.Ctx, f *fault.Error) {
	if limit, ok := f.Details["limit"].(uint64); ok {
		c.Set(headerLimit, strconv.FormatUint(limit, 10))
	} else if len(c.Response().Header.Peek(headerLimit)) == 0 {
		c.Set(headerLimit, "0")
	}
	c.Set(headerRemaining, "0")
	c.Set(headerReset, strconv.FormatInt(s.clock.Now().Unix()+int64(RetrySeconds(f.RetryAfter)), 10))
}

// RetrySeconds returns a waiting time in whole seconds, rounded up, at least
// one.
func RetrySeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}

func panicFault(p any) error {
	return fault.Wrap(fault.Internal, "", "panic", fmt.Errorf("%v\n%s", p, debug.Stack()))
}
