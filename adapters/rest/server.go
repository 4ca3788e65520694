// Package rest is the HTTP API listener: the Fiber application, the steps that every request goes
// through, and the mapping of errors to statuses. The parts of the API (registry, authentication,
// methods listing) are packages below it. Each part has its routes, its limit and its format of
// errors.
package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/adapters/rest/apidocs"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// The headers that report the limit of a client (contract A-53), in their canonical form.
var (
	headerLimit     = []byte("X-Ratelimit-Limit")
	headerRemaining = []byte("X-Ratelimit-Remaining")
	headerReset     = []byte("X-Ratelimit-Reset") // Unix seconds
)

// setNumber sets a header of the response.
func setNumber(c *fiber.Ctx, name []byte, value uint64) {
	var room [20]byte
	c.Response().Header.SetCanonical(name, strconv.AppendUint(room[:0], value, 10))
}

// Part is one part of the API.
type Part interface {
	// Mount adds the routes of the part.
	Mount(r fiber.Router)
	// Owns reports whether a path belongs to the part, even if it has no route.
	Owns(path string) bool
	// Scope returns the limit that a request of the method and path counts against.
	Scope(method, path string) throttle.Scope
	// MaxBody returns the greatest size in bytes of the body of a request of the method and path,
	// at most MaxListBody.
	MaxBody(method, path string) int
	// Name returns the name of the part in metrics.
	Name() string
	// WriteFault writes the body of an error response in the format of the part. Status and headers
	// are set already; the part may change them.
	WriteFault(c *fiber.Ctx, f *fault.Error) error
}

// Ports are the dependencies of the listener.
type Ports struct {
	Parts    []Part
	Health   *Health       // optional
	Docs     *apidocs.Docs // optional; no limit applies to them
	Throttle throttle.Throttle
	Bodies   *requestbody.Budget // optional
	Clock    clock.Clock
	Tracing  Tracing
	Metrics  prometheus.Registerer // optional
	Log      *logrus.Entry
}

// spareWorkers is added to MaxConnections for the limit of the HTTP library. The library notices a
// closed connection a moment later than the listener of Listen, which enforces MaxConnections.
const spareWorkers = 1024

// Server is the API listener.
type Server struct {
	app      *fiber.App
	parts    []Part
	health   *Health       // optional
	docs     *apidocs.Docs // optional
	throttle throttle.Throttle
	bodies   *requestbody.Budget
	clock    clock.Clock
	proxies  Proxies
	v6Bits   int    // number of leading bits of an IPv6 address that identify a client
	hsts     string // Strict-Transport-Security of responses over TLS; empty for no header
	timeouts httpconn.Timeouts
	log      *logrus.Entry
	conns    atomic.Pointer[httpconn.Connections] // set by Serve
	stops    atomic.Bool                          // set by Shutdown, which may come before Serve
	metrics  *requestMetrics
}

// New returns the listener with the routes of all parts. It does not listen yet.
func New(cfg Config, d Ports) *Server {
	s := &Server{
		parts: d.Parts, health: d.Health, docs: d.Docs, throttle: d.Throttle, bodies: d.Bodies, clock: d.Clock,
		proxies: cfg.TrustedProxies, v6Bits: cfg.ClientIPv6Prefix, hsts: cfg.TLS.hstsHeader(), log: d.Log,
		timeouts: httpconn.Timeouts{Request: cfg.ReadTimeout, Response: 2 * cfg.ReadTimeout, Idle: 4 * cfg.ReadTimeout},
	}
	if s.bodies == nil {
		s.bodies = requestbody.NewBudget(requestbody.Config{})
	}
	s.app = fiber.New(fiber.Config{
		AppName:               "tollgate",
		BodyLimit:             MaxListBody,
		StreamRequestBody:     true, // handleRequest reads the body
		CaseSensitive:         true,
		StrictRouting:         true,
		Concurrency:           cfg.MaxConnections + spareWorkers,
		DisableStartupMessage: true,
		// No part accepts forms. Parsing one would create temporary files.
		DisablePreParseMultipartForm: true,
		ErrorHandler:                 s.handleServerError,
		ReadBufferSize:               maxHeader,
	})
	s.adjustServer()
	if d.Tracing.Tracer != nil {
		s.app.Use(d.Tracing.traceRequest)
	}
	s.app.Use(s.handleRequest)
	if d.Health != nil {
		d.Health.addRoutes(s.app)
	}
	if d.Docs != nil {
		d.Docs.Mount(s.app)
	}
	for _, p := range d.Parts {
		p.Mount(s.app)
	}
	s.metrics = newRequestMetrics(d.Metrics, s.openConnections)
	s.metrics.addRoutes(s.app, d.Parts)
	return s
}

// openConnections returns the number of open connections. The library subtracts one for its
// listener even before it has one.
func (s *Server) openConnections() float64 {
	return float64(max(0, s.app.Server().GetOpenConnectionsCount()))
}

// Route is a method and a path in the syntax of Fiber.
type Route struct{ Method, Path string }

// Routes returns all routes.
func (s *Server) Routes() []Route {
	return each.Map(s.app.GetRoutes(true), func(r fiber.Route) Route { return Route{r.Method, r.Path} })
}

// adjustServer changes behaviour for which Fiber has no setting:
//   - A request with an unknown method gets 405 with our headers. It is routed as TRACE, which no
//     route has; Fiber's own response would not have our headers.
//   - The handler is called before the body of a request is read.
//   - While the service drains, every response closes its connection. A client then sends its next
//     request to another instance, and not on a connection that is about to be closed.
func (s *Server) adjustServer() {
	server := s.app.Server()
	server.CloseOnShutdown = true
	server.HeaderReceived = requestbody.Postpone
	server.ConnState = httpconn.SetState
	handle, known := server.Handler, s.app.Config().RequestMethods
	server.Handler = func(c *fasthttp.RequestCtx) {
		if !slices.Contains(known, string(c.Method())) {
			c.Request.Header.SetMethod(fiber.MethodTrace)
		}
		handle(c)
		if s.health.isDraining() {
			c.SetConnectionClose()
		}
	}
}

// Serve serves requests on the listener, which Listen returned, until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	conns := httpconn.TrackConnections(l, httpconn.FirstHeader)
	conns.Timeouts = s.timeouts
	s.conns.Store(conns)
	if s.stops.Load() {
		return l.Close()
	}
	if err := s.app.Listener(conns); err != nil {
		return fmt.Errorf("serve the API: %w", err)
	}
	return nil
}

// Shutdown closes the listener and waits until all requests in flight are finished, but not longer
// than ctx. It returns an error if requests were still in flight.
func (s *Server) Shutdown(ctx context.Context) error {
	var err error
	finished := make(chan struct{})
	s.stops.Store(true)
	conns := s.conns.Load()
	go func() {
		err = s.app.Shutdown()
		if conns != nil {
			_ = conns.Close() // the library closes it only if it has begun to serve
		}
		close(finished)
	}()
	if conns != nil {
		go conns.CloseUnused(finished)
	}
	select {
	case <-finished:
		if err != nil {
			return fmt.Errorf("shut down the API: %w", err)
		}
		return nil
	case <-ctx.Done():
		return errors.New("shut down the API: requests were still in flight at the deadline")
	}
}

// handleRequest is the outermost middleware. It sets the common headers, counts the request against
// the limit of its part, reads its body, recovers from panics, writes error responses and records
// metrics. The time of a request begins when its body has arrived.
func (s *Server) handleRequest(c *fiber.Ctx) (err error) {
	began := c.Context().Time() // the start time that the library has recorded
	s.metrics.inFlight.Inc()
	defer func() {
		s.metrics.inFlight.Dec()
		s.recordRequest(c, began)
	}()
	s.setCommonHeaders(c)
	defer func() {
		if p := recover(); p != nil {
			err = s.writeFault(c, newPanicFault(p))
		}
	}()
	body, err := s.admitRequest(c)
	if err != nil {
		return s.writeFault(c, err)
	}
	defer body.Release()
	if body != nil {
		began = time.Now()
	}
	if err := c.Next(); err != nil {
		return s.writeFault(c, err)
	}
	s.giveBack(c)
	return nil
}

type localKey uint8

// Keys of the values of a request that is counted against the limit of sign-ins.
const (
	verdictKey  localKey = iota // of the limit
	acceptedKey                 // the account whose secret was accepted
)

// Accept makes a request not count against the limit of sign-ins of its address: a secret of an
// account was accepted. Many people may share an address, and the limit stops guessing.
func Accept(c *fiber.Ctx, account string) { c.Locals(acceptedKey, account) }

// giveBack gives an accepted request back to the limit of its address, so often for an account:
// else who has one account could sign in without an end (contract A-52).
func (s *Server) giveBack(c *fiber.Ctx) {
	account, accepted := c.Locals(acceptedKey).(string)
	counted, known := c.Locals(verdictKey).(throttle.Verdict)
	if !accepted || !known {
		return
	}
	client := limitKey(originOf(c).client)
	v, err := s.throttle.Try(c.UserContext(), throttle.SignInAccount, account+" "+client)
	if err == nil && (v.Allowed || v.Unlimited) {
		err = s.throttle.GiveBack(c.UserContext(), throttle.AuthAddress, client, counted)
	}
	if err != nil {
		Log(c, s.log).WithError(err).Warn("an accepted sign-in stays counted against the limit of its address")
	}
}

// setCommonHeaders sets the request id, the origin and the headers of every response.
func (s *Server) setCommonHeaders(c *fiber.Ctx) {
	httpconn.SetRequestID(c.Context())
	from := setOrigin(c, s.proxies, s.v6Bits)
	securityHeaders.Set(c)
	if s.hsts != "" && from.secure {
		c.Set(fiber.HeaderStrictTransportSecurity, s.hsts)
	}
}

// admitRequest counts the request against its limit, rejects ambiguous framing and returns the
// body, which the caller must release. It closes the connection of an ambiguous request, because
// the start of the next request is unknown.
func (s *Server) admitRequest(c *fiber.Ctx) (*requestbody.Body, error) {
	length, malformed := httpconn.CheckFraming(&c.Request().Header)
	if malformed != nil {
		c.Context().SetConnectionClose()
	}
	part := s.partOf(c.Path())
	if err := s.countRequest(c, part); err != nil {
		requestbody.Skip(c.Context(), length)
		return nil, err
	}
	if malformed != nil {
		return nil, fault.New(fault.Invalid, "malformed request: "+malformed.Error())
	}
	if err := s.admitCaller(c, part); err != nil {
		requestbody.Skip(c.Context(), length)
		return nil, err
	}
	return s.readBody(c, part, length)
}

// admitCaller returns an error for a caller whom a part without a limit does not admit. The request then
// counts as others of the API, and its body is not read.
func (s *Server) admitCaller(c *fiber.Ctx, part Part) error {
	admits, ok := part.(interface{ Admit(c *fiber.Ctx) error })
	if !ok {
		return nil
	}
	err := admits.Admit(c)
	if fault.Is(err, fault.Unavailable) || err == nil {
		return err
	}
	if limit := s.countAs(c, throttle.APIAddress); limit != nil {
		return limit
	}
	return err
}

// readBody reads the body of a request, which is nil if it does not exist.
func (s *Server) readBody(c *fiber.Ctx, part Part, length int) (*requestbody.Body, error) {
	if length == 0 {
		return nil, nil //nolint:nilnil // nil is no body
	}
	body := requestbody.Request{Length: length, Max: MaxSecretBody, Client: limitKey(originOf(c).client)}
	if part != nil {
		body.Max = part.MaxBody(c.Method(), c.Path())
	}
	read, err := s.bodies.Read(c.Context(), body)
	switch {
	case errors.Is(err, requestbody.ErrTooLarge):
		return nil, fiber.NewError(fiber.StatusRequestEntityTooLarge,
			fmt.Sprintf("body is larger than %d bytes", body.Max))
	case errors.Is(err, requestbody.ErrTimeout):
		return nil, fiber.ErrRequestTimeout
	case errors.Is(err, requestbody.ErrIncomplete):
		return nil, fiber.ErrBadRequest
	}
	if err != nil {
		return nil, err
	}
	if err := s.countLargeBody(c, part); err != nil {
		read.Release()
		return nil, err
	}
	return read, nil
}

// largeBody is the size in bytes from which a body counts against a limit of its own: parsing it
// costs as much as many requests of the usual size.
const largeBody = 64 << 10

// countLargeBody counts a request with a large body, before the body is parsed (contract A-52).
// Only requests of the registry's limit have such bodies, except those of the console, which need a
// session.
func (s *Server) countLargeBody(c *fiber.Ctx, part Part) error {
	if part == nil || len(c.Request().Body()) <= largeBody ||
		part.Scope(c.Method(), c.Path()) != throttle.RegistryAddress {
		return nil
	}
	v, err := s.throttle.Try(c.UserContext(), throttle.LargeBodies, limitKey(originOf(c).client))
	if err != nil {
		Log(c, s.log).WithError(err).WithField("scope", throttle.LargeBodies).
			Warn("the request was not counted against its limit")
		return nil
	}
	if v.Allowed || v.Unlimited {
		return nil
	}
	return fault.New(fault.Exhausted, "too many requests with a body of more than 64 KiB").
		WithCode("rate_limit_exceeded").
		WithDetail("limit", jsonvalue.Number(v.Limit)).After(v.RetryAfter(s.clock.Now()))
}

// handleServerError responds to errors before routing, for example a header over the bound. It does
// not respond on a connection that broke before a request arrived.
func (s *Server) handleServerError(c *fiber.Ctx, err error) error {
	if RequestID(c) != "" { // it was routed, and writing its response failed
		return s.writeFault(c, err)
	}
	if errors.Is(err, fiber.ErrBadGateway) { // Fiber's error for a broken connection
		c.Status(fiber.StatusBadRequest)
		return nil
	}
	defer s.recordRequest(c, time.Now())
	httpconn.Linger(c.Context().Conn())
	s.setCommonHeaders(c)
	if limit := s.countRequest(c, s.partOf(c.Path())); limit != nil {
		err = limit
	}
	return s.writeFault(c, err)
}

// countRequest counts the request against the limit of its part and sets the headers of the limit.
// If the counter store is unavailable and no failure mode replaces it, a request below /auth gets
// 503, because its limit protects against guessing; other requests pass, with the headers of an
// unused limit.
func (s *Server) countRequest(c *fiber.Ctx, part Part) error {
	if part == nil {
		return nil
	}
	return s.countAs(c, part.Scope(c.Method(), c.Path()))
}

// countAs is countRequest for a scope.
func (s *Server) countAs(c *fiber.Ctx, scope throttle.Scope) error {
	v, err := s.throttle.Try(c.UserContext(), scope, limitKey(originOf(c).client))
	if v.Limit > 0 {
		setNumber(c, headerLimit, v.Limit)
		setNumber(c, headerRemaining, v.Remaining)
		setNumber(c, headerReset, uint64(v.ResetAt.Unix())) //nolint:gosec // a window ends after 1970
	}
	if err != nil {
		if scope == throttle.AuthAddress {
			return err
		}
		Log(c, s.log).WithError(err).WithField("scope", scope).Warn("the request was not counted against its limit")
		return nil
	}
	if scope == throttle.AuthAddress {
		c.Locals(verdictKey, v)
	}
	if v.Allowed && v.Limit > 0 && v.Remaining == 0 { // once in a window
		Log(c, s.log).WithFields(logrus.Fields{"scope": scope, "client": originOf(c).client}).Warn("an address has used up its limit")
	}
	if !v.Allowed && !v.Unlimited {
		if scope == throttle.AuthAddress {
			s.health.refuseSignIn(s.clock.Now())
		}
		return fault.New(fault.Exhausted, "too many requests").WithCode("rate_limit_exceeded").
			After(v.RetryAfter(s.clock.Now()))
	}
	return nil
}

// recordRequest records a finished request in the metrics.
func (s *Server) recordRequest(c *fiber.Ctx, began time.Time) {
	took := time.Since(began)
	s.metrics.routeMetricsOf(c, s.parts).record(c.Response().StatusCode(), took)
	s.health.count(c.Response().StatusCode(), began.Add(took))
}

func (s *Server) partOf(path string) Part { return ownerOf(s.parts, path) }

// ownerOf returns the part that owns a path, or nil.
func ownerOf(parts []Part, path string) Part {
	for _, p := range parts {
		if p.Owns(path) {
			return p
		}
	}
	return nil
}
