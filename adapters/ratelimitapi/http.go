package ratelimitapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	ratelimitpb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/requestid"
)

const jsonPath = "/json"

// Timeouts of the HTTP listener.
const (
	readTimeout  = 30 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
)

// connectionLog logs the messages of the HTTP library about broken connections.
type connectionLog struct{ log *logrus.Entry }

// Printf logs a message without the errors of the library, which quote the bytes of the request:
// they may contain a token or a password.
func (l connectionLog) Printf(format string, args ...any) {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = withoutContent(err)
		}
	}
	l.log.Debugf(format, args...)
}

// withoutContent returns a text for an error on a connection, with nothing of what the client sent.
func withoutContent(err error) string {
	var network *net.OpError
	switch {
	case errors.As(err, &network):
		return network.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the client closed the connection"
	}
	return "the request is malformed or too large"
}

// httpHandler serves the requests of the HTTP listener.
type httpHandler struct {
	service *service
	health  *Health
	bodies  *requestbody.Budget
}

func newHTTP(s *service, h *Health, bodies *requestbody.Budget, t Tracing) *fasthttp.Server {
	w := &httpHandler{service: s, health: h, bodies: bodies}
	handler := w.handleRequest
	if t.isEnabled() {
		handler = t.traceJSON(w.handleRequest)
	}
	return &fasthttp.Server{
		Handler:                      h.closeWhileDraining(handler),
		ErrorHandler:                 w.handleServerError,
		Logger:                       connectionLog{s.log},
		HeaderReceived:               requestbody.Postpone,
		StreamRequestBody:            true, // handleRequest reads the body
		ReadBufferSize:               maxHeader,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		CloseOnShutdown:              true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
	}
}

// closeWhileDraining makes every response close its connection while the service drains. A client
// then sends its next request to another instance, and not on a connection that is about to be
// closed.
func (h *Health) closeWhileDraining(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		next(c)
		if h.draining.Load() {
			c.SetConnectionClose()
		}
	}
}

func (w *httpHandler) handleRequest(c *fasthttp.RequestCtx) {
	httpconn.SetRequestID(c)
	defer func() {
		if p := recover(); p != nil {
			logPanic(w.service.httpLog(c), p)
			id := httpconn.RequestIDOf(c)
			c.Response.Reset()
			c.Response.Header.Set(requestid.Header, id)
			writeError(c, http.StatusInternalServerError, "internal error")
		}
	}()
	c.Response.Header.Set("X-Content-Type-Options", "nosniff")
	length, err := httpconn.CheckFraming(&c.Request.Header)
	if err != nil {
		c.SetConnectionClose() // the start of the next request is unknown
		writeError(c, http.StatusBadRequest, "malformed request: "+err.Error())
		return
	}
	body, err := w.bodies.Read(c, requestbody.Request{Length: length, Max: maxBodyOf(c)})
	if err != nil {
		writeBodyError(c, err)
		return
	}
	defer body.Release()
	switch string(c.Path()) {
	case jsonPath:
		w.handleJSON(c)
	case "/healthcheck":
		w.handleHealthcheck(c)
	default:
		writeError(c, http.StatusNotFound, "no such path")
	}
}

// otherMaxBody is the greatest size of the body of a request that is not for a decision.
const otherMaxBody = 16 << 10

func maxBodyOf(c *fasthttp.RequestCtx) int {
	if string(c.Path()) == jsonPath {
		return maxBody
	}
	return otherMaxBody
}

// writeBodyError responds to a request whose body was not received.
func writeBodyError(c *fasthttp.RequestCtx, err error) {
	f, isFault := fault.As(err)
	switch {
	case errors.Is(err, requestbody.ErrTooLarge):
		writeError(c, http.StatusRequestEntityTooLarge, fmt.Sprintf("body is larger than %d bytes", maxBodyOf(c)))
	case errors.Is(err, requestbody.ErrTimeout):
		writeError(c, http.StatusRequestTimeout, "request did not arrive in time")
	case isFault && f.Kind == fault.Unavailable:
		c.Response.Header.Set("Retry-After", "1")
		writeError(c, http.StatusServiceUnavailable, f.Message)
	default:
		writeError(c, http.StatusBadRequest, "request is malformed or incomplete")
	}
}

// handleJSON returns the decision like ShouldRateLimit: 200 within the limits, 429 over a limit
// (contract L-27).
func (w *httpHandler) handleJSON(c *fasthttp.RequestCtx) {
	if !c.IsPost() {
		writeNotAllowed(c, http.MethodPost)
		return
	}
	var m ratelimitpb.RateLimitRequest
	if err := protojson.Unmarshal(c.Request.Body(), &m); err != nil {
		writeError(c, http.StatusBadRequest, "malformed request: "+malformedReason(c.Request.Body(), err))
		return
	}
	ctx := contextOf(c)
	if w.service.setRequestIDs {
		ctx = requestid.NewContext(ctx, httpconn.RequestIDOf(c))
	}
	d, err := w.service.decide(ctx, &m)
	if err != nil {
		r := w.service.logRefusal(w.service.httpLog(c), err)
		writeError(c, r.http, r.message)
		return
	}
	w.writeDecision(c, &m, &d)
}

// malformedReason returns why a body cannot be parsed.
func malformedReason(body []byte, err error) string {
	if bytes.HasPrefix(body, []byte("\ufeff")) {
		return "body begins with a byte order mark, which JSON must not have (RFC 8259, 8.1)"
	}
	return normalizeError(err)
}

// normalizeError returns the message of a protojson error without the name of the library and with
// single spaces, because the library inserts spaces at random.
func normalizeError(err error) string {
	words := strings.Fields(strings.TrimPrefix(err.Error(), "proto:"))
	return strings.Join(words, " ")
}

func (w *httpHandler) writeDecision(c *fasthttp.RequestCtx, m *ratelimitpb.RateLimitRequest, d *ratelimit.Decision) {
	headers := w.service.headers.fields(m, d)
	var memory [512]byte
	body, err := appendJSON(memory[:0], d, headers, w.service.newMetadata(m, d))
	if err != nil {
		r := w.service.logRefusal(w.service.httpLog(c), err)
		writeError(c, r.http, r.message)
		return
	}
	c.Response.Header.DisableNormalizing() // the names are sent as configured
	for _, h := range headers {
		c.Response.Header.Set(h.name, h.value)
	}
	if d.Code == ratelimit.OverLimit {
		c.SetStatusCode(http.StatusTooManyRequests)
	}
	c.SetContentType("application/json")
	c.Response.SetBody(body)
}

func (w *httpHandler) handleHealthcheck(c *fasthttp.RequestCtx) {
	if !c.IsGet() && !c.IsHead() {
		writeNotAllowed(c, "GET, HEAD")
		return
	}
	c.SetContentType("text/plain; charset=utf-8")
	c.Response.Header.Set("Cache-Control", "no-store")
	if names := w.health.Unhealthy(); len(names) > 0 {
		c.SetStatusCode(http.StatusServiceUnavailable)
		c.SetBodyString("unhealthy: " + strings.Join(names, ", "))
		return
	}
	c.SetBodyString("OK")
}

// handleServerError responds to requests that cannot be read.
func (w *httpHandler) handleServerError(c *fasthttp.RequestCtx, err error) {
	httpconn.Linger(c.Conn())
	httpconn.SetRequestID(c)
	c.Response.Header.Set("X-Content-Type-Options", "nosniff")
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		writeError(c, http.StatusRequestHeaderFieldsTooLarge, "header is larger than 16 KiB")
	default:
		writeError(c, http.StatusBadRequest, "request is malformed or incomplete")
	}
}

func writeNotAllowed(c *fasthttp.RequestCtx, allowed string) {
	c.Response.Header.Set("Allow", allowed)
	writeError(c, http.StatusMethodNotAllowed, "method not allowed; this path allows "+allowed)
}

func writeError(c *fasthttp.RequestCtx, status int, message string) {
	body, err := json.Marshal(map[string]string{"error": message})
	if err != nil { // a map of strings always marshals
		status = http.StatusInternalServerError
	}
	c.SetStatusCode(status)
	c.SetContentType("application/json")
	c.SetBody(body)
}

// appendJSON appends the response to a decision as proto3 JSON: lower camel case, without zero
// values (contract L-27). protojson inserts spaces at random and is several times slower.
func appendJSON(dst []byte, d *ratelimit.Decision, headers []headerField, metadata jsonvalue.Object) ([]byte, error) {
	dst = append(dst, `{"overallCode":`...)
	dst = appendCode(dst, d.Code)
	for i := range d.Statuses {
		if i == 0 {
			dst = append(dst, `,"statuses":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendStatus(dst, &d.Statuses[i])
	}
	if len(d.Statuses) > 0 {
		dst = append(dst, ']')
	}
	if len(headers) > 0 {
		dst = appendHeaders(dst, headers)
	}
	if metadata != nil {
		var err error
		if dst, err = appendMetadata(dst, metadata); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func appendCode(dst []byte, c ratelimit.Code) []byte {
	if c == ratelimit.OverLimit {
		return append(dst, `"OVER_LIMIT"`...)
	}
	return append(dst, `"OK"`...)
}

func appendStatus(dst []byte, s *ratelimit.Status) []byte {
	dst = append(dst, `{"code":`...)
	dst = appendCode(dst, s.Code)
	if s.HasLimit() {
		dst = append(dst, `,"currentLimit":`...)
		dst = appendLimit(dst, s.Limit, limitName(s))
	}
	if s.Remaining > 0 {
		dst = append(dst, `,"limitRemaining":`...)
		dst = strconv.AppendUint(dst, uint64(s.Remaining), 10)
	}
	if s.HasLimit() {
		dst = append(dst, `,"durationUntilReset":"`...)
		dst = strconv.AppendInt(dst, wholeSeconds(s.UntilReset), 10)
		dst = append(dst, `s"`...)
	}
	return append(dst, '}')
}

// appendLimit appends a limit and its name, which may be empty.
func appendLimit(dst []byte, l ratelimit.Limit, name string) []byte {
	dst = append(dst, '{')
	if name != "" {
		dst = append(dst, `"name":`...)
		dst = jsonstring.Append(dst, name)
		dst = append(dst, ',')
	}
	if l.RequestsPerUnit > 0 {
		dst = append(dst, `"requestsPerUnit":`...)
		dst = strconv.AppendUint(dst, uint64(l.RequestsPerUnit), 10)
		dst = append(dst, ',')
	}
	dst = append(dst, `"unit":"`...)
	dst = append(dst, strings.ToUpper(l.Unit.String())...)
	return append(dst, `"}`...)
}

// appendHeaders appends headers. Their names need no escaping.
func appendHeaders(dst []byte, headers []headerField) []byte {
	dst = append(dst, `,"responseHeadersToAdd":[`...)
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"key":"`...)
		dst = append(dst, h.name...)
		dst = append(dst, `","value":`...)
		dst = jsonstring.Append(dst, h.value)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
