// Package ratelimitapi is the rate limit service's two listeners: gRPC with the
// v3 protocol and health, and HTTP with /json and /healthcheck. It decides
// nothing itself; what is asked of it goes to the core.
package ratelimitapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
)

// Dependencies is what the listeners need of the rest of the service.
type Ports struct {
	Decider Decider
	Meter   Meter
	Health  *Health
	Tracing Tracing
	Metrics prometheus.Registerer // nil to show none, which TLS does not allow
	Log     *logrus.Entry
}

// Server is the two listeners.
type Server struct {
	grpc     *grpc.Server
	http     *fasthttp.Server
	shutdown chan struct{} // closed when Shutdown has been called

	grpcConns, httpConns *httpconn.Connections
}

// spareWorkers is how many more connections than the bound the HTTP library
// serves at once. The listener refuses connections before that: it makes room
// when one is closed, and the library a moment later.
const spareWorkers = 1024

// Open takes the addresses of both listeners; the cleanup gives up what
// Shutdown has not. Nothing is answered before Serve.
func Open(ctx context.Context, c Config, d Ports) (*Server, func(), error) {
	service := &service{
		decider: d.Decider, meter: d.Meter, headers: c.Headers, dynamicMetadata: c.DynamicMetadata,
		setRequestIDs: d.Log.Logger.IsLevelEnabled(logrus.DebugLevel), log: d.Log,
	}
	if d.Tracing.isEnabled() {
		service.decider = tracedDecider{d.Decider}
	}
	server, err := newGRPC(c, service, d)
	if err != nil {
		return nil, nil, err
	}
	grpcAt, err := c.GRPC.openListener(ctx)
	if err != nil {
		return nil, nil, err
	}
	httpAt, err := c.HTTP.openListener(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, grpcAt.Close())
	}
	grpcAt = httpconn.NewListener(grpcAt, httpconn.ListenerOptions{Name: "grpc", Max: c.GRPC.MaxConnections, Metrics: d.Metrics, Log: d.Log})
	httpAt = httpconn.NewListener(httpAt, httpconn.ListenerOptions{
		Name: "ratelimit_http", Max: c.HTTP.MaxConnections, Refusal: httpconn.TooManyConnections, Metrics: d.Metrics, Log: d.Log,
	})
	web := newHTTP(service, d.Health, d.Tracing)
	web.Concurrency = c.HTTP.MaxConnections + spareWorkers
	s := &Server{grpc: server, http: web, shutdown: make(chan struct{})}
	s.grpcConns = httpconn.TrackConnections(grpcAt, httpconn.FirstByte)
	s.httpConns = httpconn.TrackConnections(httpAt, httpconn.FirstHeader)
	return s, s.closeAll, nil
}

// GRPCAddr returns where the gRPC listener is.
func (s *Server) GRPCAddr() net.Addr { return s.grpcConns.Addr() }

// HTTPAddr returns where the HTTP listener is.
func (s *Server) HTTPAddr() net.Addr { return s.httpConns.Addr() }

// Serve answers on both listeners until Shutdown, and returns nil then. When
// one fails, it returns why, and the other is closed.
func (s *Server) Serve() error {
	ended := make(chan error, 2)
	go func() { ended <- wrapServeError("rate limit gRPC", s.grpc.Serve(s.grpcConns)) }()
	go func() { ended <- wrapServeError("rate limit HTTP", s.http.Serve(s.httpConns)) }()
	first := <-ended
	select {
	case <-s.shutdown:
	default:
		s.closeAll()
	}
	second := <-ended
	return errors.Join(first, second)
}

func wrapServeError(listener string, err error) error {
	if err == nil || errors.Is(err, grpc.ErrServerStopped) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", listener, err)
}

// Shutdown closes both listeners and waits for the calls in flight, until ctx is done at the
// latest; calls that are still in flight then are cut off. Health should have been drained before
// (contract O-18).
func (s *Server) Shutdown(ctx context.Context) error {
	select {
	case <-s.shutdown:
	default:
		close(s.shutdown)
	}
	finished := make(chan struct{})
	defer close(finished)
	go s.grpcConns.CloseUnused(finished)
	go s.httpConns.CloseUnused(finished)
	web := make(chan error, 1)
	go func() { web <- s.http.ShutdownWithContext(ctx) }()
	calls := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(calls)
	}()
	select {
	case <-calls:
	case <-ctx.Done():
		s.closeAll()
		<-calls
	}
	if err := errors.Join(<-web, ctx.Err()); err != nil {
		return fmt.Errorf("shut the rate limit listeners down: %w", err)
	}
	return nil
}

// close ends everything at once. The connections go first: gRPC's Stop waits for
// those that have not yet said that they speak HTTP/2.
func (s *Server) closeAll() {
	_ = s.grpcConns.Close() // closed already when it was served
	_ = s.httpConns.Close() // likewise
	s.grpcConns.CloseAll()
	s.httpConns.CloseAll()
	s.grpc.Stop()
}

func removeUnixSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return errors.New("there is something else than a socket at " + path)
	}
	return os.Remove(path)
}
