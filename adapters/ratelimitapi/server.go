// Package ratelimitapi is the two listeners of the rate limit service: gRPC with the Envoy rate
// limit protocol v3 and health, and HTTP with /json and /healthcheck. The core makes the decisions.
package ratelimitapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/adapters/internal/httpconn"
	"github.com/tollgate-dev/tollgate/adapters/internal/tlsfiles"
	"github.com/tollgate-dev/tollgate/adapters/requestbody"
	"github.com/tollgate-dev/tollgate/core/ratelimit/decide"
)

// Ports are the dependencies of the listeners.
type Ports struct {
	Decide decide.Func
	// RecordCall counts a call, and how long it took.
	RecordCall func(took time.Duration)
	Health     *Health
	Bodies     *requestbody.Budget // optional
	Tracing    Tracing
	// Register adds more services to the gRPC listener. It is optional.
	Register func(grpc.ServiceRegistrar)
	Metrics  prometheus.Registerer // optional; required with TLS
	Log      *logrus.Entry
}

// Server is the two listeners.
type Server struct {
	grpc     *grpc.Server
	http     *fasthttp.Server
	shutdown chan struct{} // closed by Shutdown

	grpcConns, httpConns *httpconn.Connections
}

// spareWorkers is added to MaxConnections for the limit of the HTTP library. The library notices a
// closed connection a moment later than our listener, which enforces MaxConnections.
const spareWorkers = 1024

// Open opens both listeners. They serve no requests before Serve. The cleanup closes everything
// that Shutdown has not closed.
func Open(ctx context.Context, c Config, d Ports) (*Server, func(), error) {
	service := &service{
		decisions: d.Decide, recordCall: d.RecordCall, headers: c.Headers, dynamicMetadata: c.DynamicMetadata,
		setRequestIDs: d.Log.Logger.IsLevelEnabled(logrus.DebugLevel), log: d.Log,
	}
	if d.Tracing.isEnabled() {
		service.decisions = traced(d.Decide)
	}
	if d.Bodies == nil {
		d.Bodies = requestbody.NewBudget(requestbody.Config{})
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
	grpcAt = httpconn.NewListener(grpcAt, httpconn.ListenerOptions{
		Name: "grpc", Max: c.GRPC.MaxConnections, Metrics: d.Metrics, Log: d.Log,
	})
	httpAt = httpconn.NewListener(httpAt, httpconn.ListenerOptions{
		Name: "ratelimit_http", Max: c.GRPC.MaxConnections, Refusal: httpconn.TooManyConnections,
		Metrics: d.Metrics, Log: d.Log,
	})
	web := newHTTP(service, d.Health, d.Bodies, d.Tracing)
	web.Concurrency = c.GRPC.MaxConnections + spareWorkers
	s := &Server{grpc: server, http: web, shutdown: make(chan struct{})}
	s.grpcConns = httpconn.TrackConnections(grpcAt, httpconn.FirstByte)
	s.httpConns = httpconn.TrackConnections(httpAt, httpconn.FirstHeader)
	return s, s.closeAll, nil
}

// GRPCAddr returns the address of the gRPC listener.
func (s *Server) GRPCAddr() net.Addr { return s.grpcConns.Addr() }

// HTTPAddr returns the address of the HTTP listener.
func (s *Server) HTTPAddr() net.Addr { return s.httpConns.Addr() }

// Addresses returns the addresses by the names of the listeners.
func (s *Server) Addresses() logrus.Fields {
	return logrus.Fields{"grpc": s.GRPCAddr().String(), "ratelimit_http": s.HTTPAddr().String()}
}

// Serve serves requests on both listeners. It returns nil after Shutdown. If one listener fails,
// Serve closes the other one and returns the error.
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

// Shutdown closes both listeners and waits for the calls in flight. When ctx is done, it aborts the
// remaining calls and returns an error. The caller should drain Health before (contract O-18).
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
		return fmt.Errorf("shut down the rate limit listeners: %w", err)
	}
	return nil
}

// closeAll closes listeners and connections at once. It closes the connections before it calls Stop
// of the gRPC server, which waits for connections before their HTTP/2 preface.
func (s *Server) closeAll() {
	_ = s.grpcConns.Close() // it is closed already after Serve
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
		return errors.New(path + " exists and is not a socket")
	}
	return os.Remove(path)
}

// followFiles returns the TLS configuration of the listener, which reloads changed files.
func (c TLSConfig) followFiles(log *logrus.Entry) (*tls.Config, error) {
	return tlsfiles.FollowFiles(log, c.loadFiles, c.Cert, c.Key, c.ClientCA)
}

func (c TLSConfig) loadFiles() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("GRPC_SERVER_TLS_CERT and GRPC_SERVER_TLS_KEY: %w", err)
	}
	loaded := tlsfiles.ServerConfig(pair, "h2")
	if c.ClientCA != "" {
		err = c.requireClientCertificates(loaded)
	}
	return loaded, err
}

func (c TLSConfig) requireClientCertificates(to *tls.Config) error {
	pem, err := os.ReadFile(c.ClientCA)
	if err != nil {
		return fmt.Errorf("GRPC_CLIENT_TLS_CACERT: %w", err)
	}
	to.ClientCAs = x509.NewCertPool()
	if !to.ClientCAs.AppendCertsFromPEM(pem) {
		return errors.New("GRPC_CLIENT_TLS_CACERT: the file contains no certificate")
	}
	to.ClientAuth = tls.RequireAndVerifyClientCert
	if c.ClientSAN != "" {
		to.VerifyConnection = func(s tls.ConnectionState) error {
			return s.PeerCertificates[0].VerifyHostname(c.ClientSAN)
		}
	}
	return nil
}
