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

	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// statuses maps kinds of errors to HTTP statuses. It is the only table of this mapping. The
// WriteFault of a part may only choose a more specific status.
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

// protocolKind returns the kind of an error of the HTTP server. The response keeps the status of
// the server.
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

// writeFault writes an error response: status and headers by the kind of the error, the body by the
// part that owns the path. Internal errors are logged and not sent.
func (s *Server) writeFault(c *fiber.Ctx, err error) error {
	status, f := classifyError(err)
	c.Status(status)
	away := f.Kind == fault.Unavailable && upstreamStatuses[f.Code] == 0
	if f.Kind == fault.Internal || away {
		Log(c, s.log).WithError(err).WithField("path", loggedPath(c.Path())).Error("request failed")
	}
	if f.Kind == fault.Exhausted || away || f.Kind == fault.Unauthenticated && f.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(RetrySeconds(f.RetryAfter)))
	}
	if f.Kind == fault.Exhausted {
		s.setExhausted(c, f)
	}
	if challenge := f.Details.Text("challenge"); challenge != "" {
		c.Set(fiber.HeaderWWWAuthenticate, challenge)
	} else if status == http.StatusUnauthorized {
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	if part := s.partOf(c.Path()); part != nil {
		return part.WriteFault(c, f)
	}
	return c.JSON(map[string]string{"error": s.unownedMessage(status, f)})
}

// loggedPath returns a copy of a path for the log, without the token that the path of a view may
// have (contract C-34).
func loggedPath(path string) string {
	const place = 4 // of the token in /registries/VIEW/t/TOKEN/...
	parts := strings.Split(strings.Clone(path), "/")
	if len(parts) > place && parts[1] == "registries" && parts[place-1] == "t" {
		parts[place] = "[token]"
	}
	return strings.Join(parts, "/")
}

// unownedMessage returns the message of an error outside all parts. A 404 points to the
// documentation of the API.
func (s *Server) unownedMessage(status int, f *fault.Error) string {
	if status == http.StatusNotFound && s.docs != nil {
		return f.Message + "; the API is described at " + apidocs.PagePath
	}
	return f.Message
}

// classifyError returns the status of an error and the error to send to the client.
func classifyError(err error) (int, *fault.Error) {
	var fe *fiber.Error
	if errors.As(err, &fe) {
		return fe.Code, fault.New(protocolKind(fe.Code), protocolMessage(fe))
	}
	f, ok := fault.As(err)
	if !ok || f.Kind == fault.Internal {
		return http.StatusInternalServerError, fault.New(fault.Internal, "internal error")
	}
	if status, ok := upstreamStatuses[f.Code]; ok {
		return status, f
	}
	return statuses[f.Kind], f
}

// upstreamStatuses are the statuses of failures of servers of others, which are not logged.
var upstreamStatuses = map[fault.Code]int{
	fault.UpstreamWrong: http.StatusBadGateway, fault.UpstreamSlow: http.StatusGatewayTimeout,
}

func protocolMessage(e *fiber.Error) string {
	switch e.Code {
	case http.StatusNotFound:
		return "no such path"
	case http.StatusMethodNotAllowed:
		return "method not allowed"
	case http.StatusRequestHeaderFieldsTooLarge:
		return fmt.Sprintf("header is larger than %d bytes", maxHeader)
	case http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge:
		return e.Message
	case http.StatusRequestTimeout:
		return "request did not arrive in time"
	default:
		return strings.ToLower(http.StatusText(e.Code))
	}
}

// setExhausted sets the headers of the limit that was exceeded: nothing remains until the client
// may try again (contract A-53). It may be another limit than that of the part; the detail "limit"
// holds its size.
func (s *Server) setExhausted(c *fiber.Ctx, f *fault.Error) {
	if limit, ok := f.Details["limit"].(jsonvalue.Number); ok {
		setNumber(c, headerLimit, uint64(limit))
	} else if len(c.Response().Header.PeekBytes(headerLimit)) == 0 {
		setNumber(c, headerLimit, 0)
	}
	setNumber(c, headerRemaining, 0)
	reset := s.clock.Now().Unix() + int64(RetrySeconds(f.RetryAfter))
	setNumber(c, headerReset, uint64(reset)) //nolint:gosec // it is after 1970
}

// RetrySeconds returns a waiting time in whole seconds, rounded up, and at least 1.
func RetrySeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}

func newPanicFault(p any) error {
	return fault.Wrap(fault.Internal, "panic", fmt.Errorf("%v\n%s", p, debug.Stack()))
}
