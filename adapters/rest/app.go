// Package rest is the HTTP API listener: the Fiber application, what surrounds
// every request, and the one place where a failure becomes a status. The parts
// of the API (registry, authentication, methods listing) live in packages below
// it and bring their routes, their limit and their own form of an error.
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
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/throttle"
)

// The headers that report a caller's limit (contract A-53).
const (
	headerLimit     = "X-RateLimit-Limit"
	headerRemaining = "X-RateLimit-Remaining"
	headerReset     = "X-RateLimit-Reset" // Unix seconds (contract A-53)
)

// Part is one part of the API.
type Part interface {
	// Mount adds the part's routes.
	Mount(r fiber.Router)
	// Owns reports whether a path is the part's, also one that has no route.
	Owns(path string) bool
	// Scope returns the limit that requests of the method and path count against.
	Scope(method, path string) throttle.Scope
	// Name names the part in metrics.
	Name() string
	// WriteFault writes the body of a failure in the part's own form. Status
	// and headers are set already; the part may change them.
	WriteFault(c *fiber.Ctx, f *fault.Error) error
}

// Pages are routes that belong to no part: they count against no limit.
type Pages interface {
	Mount(r fiber.Router)
	// Path is where people begin to read. Who asks for a path that no part
	// has is told of it.
	Path() string
}

// Dependencies is what the listener needs of the rest of the service.
type Dependencies struct {
	Parts    []Part
	Health   *Health
	Pages    Pages // nil for none
	Throttle throttle.Throttle
	Clock    clock.Clock
	Tracing  Tracing
	Metrics  prometheus.Registerer // nil to show none
	Log      *logrus.Entry
}

// spareWorkers is how many more connections than MaxConnections the library serves
// at once. Listen refuses connections before that: it makes room when one is
// closed, and the library a moment later.
const spareWorkers = 1024

// Server is the API listener.
type Server struct {
	app      *fiber.App
	parts    []Part
	health   *Health // nil for none
	pages    Pages   // nil for none
	throttle throttle.Throttle
	clock    clock.Clock
	proxies  Proxies
	v6Bits   int    // how much of an IPv6 address is a client's own
	hsts     string // Strict-Transport-Security of answers over TLS; empty for none
	log      *logrus.Entry
	conns    atomic.Pointer[httpconn.Connections] // set by Serve
	meter    *meter
}

// New returns the listener with all parts mounted. It does not listen yet.
func New(cfg Config, d Dependencies) *Server {
	s := &Server{
		parts: d.Parts, health: d.Health, pages: d.Pages, throttle: d.Throttle, clock: d.Clock,
		proxies: cfg.TrustedProxies, v6Bits: cfg.ClientIPv6Prefix, hsts: cfg.TLS.hsts(), log: d.Log,
	}
	s.app = fiber.New(fiber.Config{
		AppName:               "tollgate",
		BodyLimit:             MaxBody,
		CaseSensitive:         true,
		StrictRouting:         true,
		Concurrency:           cfg.MaxConnections + spareWorkers,
		DisableStartupMessage: true,
		// No part takes forms; parsing one would fill temporary files.
		DisablePreParseMultipartForm: true,
		ErrorHandler:                 s.serverFault,
		IdleTimeout:                  cfg.IdleTimeout,
		ReadBufferSize:               maxHeader,
		ReadTimeout:                  cfg.ReadTimeout,
		WriteTimeout:                 cfg.WriteTimeout,
	})
	s.adjustServer()
	if d.Tracing.Tracer != nil {
		s.app.Use(d.Tracing.around)
	}
	s.app.Use(s.around)
	if d.Health != nil {
		d.Health.mount(s.app)
	}
	if d.Pages != nil {
		d.Pages.Mount(s.app)
	}
	for _, p := range d.Parts {
		p.Mount(s.app)
	}
	s.meter = newMeter(d.Metrics, s.connections)
	s.meter.know(s.app, d.Parts)
	return s
}

// connections returns how many connections are open. The server counts its
// listener as one and takes it off again, also while there is none.
func (s *Server) connections() float64 {
	return float64(max(0, s.app.Server().GetOpenConnectionsCount()))
}

// Route is a method, and a path as Fiber writes it.
type Route struct{ Method, Path string }

// Routes returns all routes, each method of a path for itself.
func (s *Server) Routes() []Route {
	var list []Route
	for _, r := range s.app.GetRoutes(true) {
		list = append(list, Route{r.Method, r.Path})
	}
	return list
}

// adjustServer changes what Fiber has no setting for. Methods that it does not
// know reach the routes, where they are 405, instead of an answer of Fiber's own
// that bears none of our headers: they pass as TRACE, which no route has. A
// request whose body fails keeps its header. And while the service drains every
// answer ends its connection: a client that keeps one goes elsewhere with its
// next request, instead of sending that when the connection is being closed.
func (s *Server) adjustServer() {
	server := s.app.Server()
	server.CloseOnShutdown = true
	arriving := &headings{clock: s.clock, life: 2 * server.ReadTimeout}
	server.HeaderReceived = arriving.keep
	fail := server.ErrorHandler
	server.ErrorHandler = func(c *fasthttp.RequestCtx, err error) {
		arriving.restore(&c.Request.Header)
		fail(c, err)
	}
	route, known := server.Handler, s.app.Config().RequestMethods
	server.Handler = func(c *fasthttp.RequestCtx) {
		arriving.forget(&c.Request.Header)
		if !slices.Contains(known, string(c.Method())) {
			c.Request.Header.SetMethod(fiber.MethodTrace)
		}
		route(c)
		if s.health.drains() {
			c.SetConnectionClose()
		}
	}
}

// Serve answers on the listener, which Listen returned, until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	conns := httpconn.TrackConnections(l, httpconn.FirstHeader)
	s.conns.Store(conns)
	if err := s.app.Listener(conns); err != nil {
		return fmt.Errorf("serve API: %w", err)
	}
	return nil
}

// Shutdown closes the listener and waits for the calls in flight, until ctx is
// done at the latest.
func (s *Server) Shutdown(ctx context.Context) error {
	var err error
	finished := make(chan struct{})
	go func() {
		err = s.app.Shutdown()
		close(finished)
	}()
	if conns := s.conns.Load(); conns != nil {
		go conns.CloseUnused(finished)
	}
	select {
	case <-finished:
		if err != nil {
			return fmt.Errorf("shut API down: %w", err)
		}
		return nil
	case <-ctx.Done():
		return errors.New("shut API down: calls were still in flight")
	}
}

// around surrounds every request: it names and measures it, keeps a panic
// inside, counts it against the part's limit and turns a failure into an answer.
func (s *Server) around(c *fiber.Ctx) (err error) {
	s.meter.inFlight.Inc()
	defer func() {
		s.meter.inFlight.Dec()
		s.answered(c, c.Context().Time()) // which the server has looked up anyway
	}()
	s.greet(c)
	defer func() {
		if p := recover(); p != nil {
			err = s.writeFault(c, panicFault(p))
		}
	}()
	if err := s.admit(c); err != nil {
		return s.writeFault(c, err)
	}
	if err := c.Next(); err != nil {
		return s.writeFault(c, err)
	}
	return nil
}

// greet does what no answer goes without.
func (s *Server) greet(c *fiber.Ctx) {
	nameRequest(c)
	setOrigin(c, s.proxies, s.v6Bits)
	setSecurityHeaders(c)
	if s.hsts != "" && Secure(c) {
		c.Set(fiber.HeaderStrictTransportSecurity, s.hsts)
	}
}

// admit counts the request and refuses one that others may read differently.
// Whatever refuses that, its connection is closed: nobody knows where the next
// request on it begins.
func (s *Server) admit(c *fiber.Ctx) error {
	malformed := httpconn.CheckFraming(&c.Request().Header)
	if malformed != nil {
		c.Context().SetConnectionClose()
	}
	if err := s.count(c); err != nil {
		return err
	}
	if malformed != nil {
		return fault.New(fault.Invalid, "", "malformed request: "+malformed.Error())
	}
	return nil
}

// serverFault answers what went wrong before a request could be routed, such
// as a body over the bound. A connection that broke before a request had come
// is no failure of the service, and nobody is left to be answered.
func (s *Server) serverFault(c *fiber.Ctx, err error) error {
	if RequestID(c) != "" { // it was routed, and writing its answer failed
		return s.writeFault(c, err)
	}
	if errors.Is(err, fiber.ErrBadGateway) { // Fiber's word for it
		c.Status(fiber.StatusBadRequest)
		return nil
	}
	defer s.answered(c, time.Now())
	httpconn.Linger(c.Context().Conn())
	s.greet(c)
	if limit := s.count(c); limit != nil {
		err = limit
	}
	return s.writeFault(c, err)
}

// count counts the request against its part's limit and sets the limit's
// headers. Where the limit cannot be counted, because the counter store is away
// and no failure mode has the process count instead, /auth answers 503, because
// its limit is a defence; everything else is let through, with the headers of a
// limit of which nothing is used.
func (s *Server) count(c *fiber.Ctx) error {
	part := s.partOf(c.Path())
	if part == nil {
		return nil
	}
	scope := part.Scope(c.Method(), c.Path())
	v, err := s.throttle.Try(c.UserContext(), scope, limitKey(originOf(c).client))
	if v.Limit > 0 {
		c.Set(headerLimit, strconv.FormatUint(v.Limit, 10))
		c.Set(headerRemaining, strconv.FormatUint(v.Remaining, 10))
		c.Set(headerReset, strconv.FormatInt(v.ResetAt.Unix(), 10))
	}
	if err != nil {
		if scope == throttle.AuthAddress {
			return err
		}
		Log(c, s.log).WithError(err).WithField("scope", scope).Warn("a limit was not counted")
		return nil
	}
	if !v.Allowed && !v.Unlimited {
		return fault.New(fault.Exhausted, "rate_limit_exceeded", "too many requests").
			After(v.RetryAfter(s.clock.Now()))
	}
	return nil
}

// answered takes note of a request for the metrics.
func (s *Server) answered(c *fiber.Ctx, began time.Time) {
	s.meter.of(c, s.parts).answered(c.Response().StatusCode(), time.Since(began))
}

func (s *Server) partOf(path string) Part { return ownerOf(s.parts, path) }

// ownerOf returns the part that a path belongs to; nil for none.
func ownerOf(parts []Part, path string) Part {
	for _, p := range parts {
		if p.Owns(path) {
			return p
		}
	}
	return nil
}
